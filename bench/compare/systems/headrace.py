"""headrace, through its C ABI on torch's pointers and current stream."""

import ctypes

import numpy
import torch

from .. import abi
from .base import Runner, System


def _current_stream():
    return torch.cuda.current_stream().cuda_stream


class Headrace(System):
    name = 'headrace'
    title = 'headrace'

    def __init__(self, library_path):
        self.context = abi.Context(abi.Library(library_path), 'cuda')
        self.version = self.context.library.version

    def why_not(self, row):
        return None

    def settings(self, problem):
        return [{'launch': 'plain'}, {'launch': 'dependent', 'fresh_tokens': 1}]

    def bind(self, problem, setting):
        return HeadraceRunner(self.context, problem, setting)


class HeadraceRunner(Runner):
    def __init__(self, context, problem, setting):
        super().__init__(problem)
        row = problem.row
        desc = abi.AttentionDesc(
            num_qo_heads=row.qo_heads, num_kv_heads=row.kv_heads, head_dim=row.head_dim,
            page_size=row.page_size, q_dtype=abi.DTYPES['bf16'], kv_dtype=abi.DTYPES[row.dtype],
            out_dtype=abi.DTYPES['bf16'], layout=abi.LAYOUTS[row.layout],
            sm_scale=problem.sm_scale)
        options = abi.PlanOptions(max_requests=row.batch, max_seq_len=max(problem.seq_lens_list))
        sizes = context.plan_sizes(desc, options)
        self.plan_buffer = torch.empty(sizes.plan_bytes, dtype=torch.uint8, device='cuda')
        self.workspace = torch.empty(sizes.workspace_bytes, dtype=torch.uint8, device='cuda')
        self.host_seq_lens = numpy.array(problem.seq_lens_list, dtype=numpy.int32)
        self.lengths_plan = context.plan(desc, options, self.plan_buffer.data_ptr(),
                                         sizes.plan_bytes)
        self.args = abi.RunArgs(
            num_requests=row.batch, q=problem.q.data_ptr(), num_pages=problem.set_pages,
            block_table=problem.block_table.data_ptr(),
            block_table_stride=problem.block_table.stride(0),
            seq_lens=problem.seq_lens.data_ptr(), out=self.out.data_ptr(),
            workspace=self.workspace.data_ptr(), workspace_bytes=sizes.workspace_bytes,
            dependent_launch=int(setting['launch'] == 'dependent'),
            fresh_tokens=setting.get('fresh_tokens', -1))
        if problem.k_scale is not None:
            self.args.k_scale = problem.k_scale.data_ptr()
            self.args.v_scale = problem.v_scale.data_ptr()

    def plan(self):
        self.lengths_plan.update(self.host_seq_lens.ctypes.data, self.problem.row.batch,
                                 _current_stream())

    def run(self, kv_set):
        self.args.k_cache = self.problem.k_sets[kv_set].data_ptr()
        self.args.v_cache = self.problem.v_sets[kv_set].data_ptr()
        self.args.stream = ctypes.c_void_p(_current_stream())
        self.lengths_plan.run(self.args)
