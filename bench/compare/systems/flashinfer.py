"""FlashInfer: batch decode on CUDA cores and on tensor cores, the persistent kernel, and XQA."""

import abc
import contextlib
import functools
import math
import os

import torch

from .. import packages
from . import flashinfer_jit
from .base import PackagedSystem, ScaledRunner

WORKSPACE_BYTES = 512 << 20
# XQA's default splits a request by the number of blocks that one wave has room for; this variable
# overrides it at every launch.
XQA_SPLITS_VARIABLE = 'XQA_NB_SUB_SEQ'
XQA_MIN_SPLIT_TOKENS = 256
XQA_MAX_PARTIALS = 16384  # of all requests and heads: what the workspace has room for


def _workspace():
    """Zeroed: counters in it start from there."""
    return torch.zeros(WORKSPACE_BYTES, dtype=torch.uint8, device='cuda')


class FlashInferSystem(PackagedSystem):
    distribution = 'flashinfer-python'

    @functools.cached_property
    def missing(self):
        return packages.why_not(self.distribution) or packages.why_not_imported('flashinfer')

    def extra_kernels(self, row):
        return ScaledRunner.NUM_KERNELS if row.head_scales else 0

    def prepare(self, rows):
        rows = [row for row in rows if self.why_not(row) is None]
        if rows:
            flashinfer_jit.compile_modules(self.modules(rows))

    @abc.abstractmethod
    def modules(self, rows):
        """What has to be compiled for these rows."""


class BatchDecode(FlashInferSystem):
    """BatchDecodeWithPagedKVCacheWrapper."""

    def __init__(self, use_tensor_cores):
        self.use_tensor_cores = use_tensor_cores
        self.name = 'fi-tc' if use_tensor_cores else 'fi-cc'
        self.title = f"FlashInfer batch decode, {'tensor' if use_tensor_cores else 'CUDA'} cores"

    def unsupported(self, row):
        if not self.use_tensor_cores and row.group not in (1, 2, 3, 4, 8):
            return f'needs a group of 1, 2, 3, 4 or 8, given {row.group}'
        return None

    def modules(self, rows):
        if self.use_tensor_cores:
            return flashinfer_jit.tensor_core_modules(rows)
        return flashinfer_jit.cuda_core_modules(rows)

    def settings(self, problem):
        settings = [{'pdl': pdl, 'cuda_graph_plan': graph_plan}
                    for pdl in (False, True) for graph_plan in (False, True)]
        if self.use_tensor_cores:
            settings += [{'pdl': True, 'cuda_graph_plan': False, 'waves': waves}
                         for waves in (1, 2)]
        return settings

    def bind(self, problem, setting):
        return BatchDecodeRunner(problem, setting, self.use_tensor_cores)


class BatchDecodeRunner(ScaledRunner):
    def __init__(self, problem, setting, use_tensor_cores):
        super().__init__(problem)
        from flashinfer import BatchDecodeWithPagedKVCacheWrapper
        buffers = {}
        if setting['cuda_graph_plan']:
            buffers = {'use_cuda_graph': True,
                       'paged_kv_indptr_buffer': problem.kv_indptr.to('cuda'),
                       'paged_kv_indices_buffer': problem.kv_indices.clone(),
                       'paged_kv_last_page_len_buffer': problem.last_page_len.to('cuda')}
        self.wrapper = BatchDecodeWithPagedKVCacheWrapper(
            _workspace(), 'NHD', use_tensor_cores=use_tensor_cores, backend='fa2', **buffers)
        self.pdl = setting['pdl']
        self.plan_options = {}
        if 'waves' in setting:  # splits of one size, as many as fill every SM so many times
            pages = sum(problem.num_pages_list) * problem.row.kv_heads
            self.plan_options['fixed_split_size'] = math.ceil(
                pages / (setting['waves'] * problem.num_sms))

    def plan(self):
        problem, row = self.problem, self.problem.row
        self.wrapper.plan(problem.kv_indptr, problem.kv_indices, problem.last_page_len,
                          row.qo_heads, row.kv_heads, row.head_dim, row.page_size,
                          q_data_type=problem.q.dtype, kv_data_type=problem.cache_dtype,
                          sm_scale=problem.sm_scale, **self.plan_options)

    def run(self, kv_set):
        self.wrapper.run(self.q, (self.problem.k_sets[kv_set], self.problem.v_sets[kv_set]),
                         out=self.out, enable_pdl=self.pdl)


class Persistent(FlashInferSystem):
    """BatchAttention."""

    name = 'fi-ba'
    title = 'FlashInfer BatchAttention (persistent)'

    def modules(self, rows):
        return flashinfer_jit.persistent_modules(rows)

    def bind(self, problem, setting):
        return PersistentRunner(problem)


class PersistentRunner(ScaledRunner):
    def __init__(self, problem):
        super().__init__(problem)
        from flashinfer import BatchAttention
        self.attention = BatchAttention('NHD', 'cuda')
        self.lse = torch.empty(problem.q.shape[:2], dtype=torch.float32, device='cuda')
        self.qo_indptr = torch.arange(problem.row.batch + 1, dtype=torch.int32)

    def plan(self):
        problem, row = self.problem, self.problem.row
        self.attention.plan(self.qo_indptr, problem.kv_indptr, problem.kv_indices,
                            problem.host_seq_lens, row.qo_heads, row.kv_heads, row.head_dim,
                            row.head_dim, row.page_size, sm_scale=problem.sm_scale,
                            q_data_type=problem.q.dtype, kv_data_type=problem.cache_dtype)

    def run(self, kv_set):
        self.attention.run(self.q, (self.problem.k_sets[kv_set], self.problem.v_sets[kv_set]),
                           out=self.out, lse=self.lse)


class Xqa(FlashInferSystem):
    """xqa_batch_decode_with_kv_cache; quantises the query itself when the cache is fp8."""

    name = 'fi-xqa'
    title = 'FlashInfer XQA'

    def unsupported(self, row):
        if row.page_size not in (16, 32, 64, 128):
            return f'needs pages of 16, 32, 64 or 128, given {row.page_size}'
        return None

    def modules(self, rows):
        return flashinfer_jit.xqa_modules(rows)

    def settings(self, problem):
        most = min(-(-max(problem.seq_lens_list) // XQA_MIN_SPLIT_TOKENS),
                   XQA_MAX_PARTIALS // (problem.row.batch * problem.row.kv_heads))
        return ([{'pdl': False}, {'pdl': True}] +
                [{'pdl': True, 'splits': splits} for splits in (4, 16, 64) if splits <= most])

    def bind(self, problem, setting):
        return XqaRunner(problem, setting)


class XqaRunner(ScaledRunner):
    def __init__(self, problem, setting):
        super().__init__(problem)
        from flashinfer.decode import xqa_batch_decode_with_kv_cache
        self.attention = xqa_batch_decode_with_kv_cache
        self.workspace = _workspace()
        self.pdl = setting['pdl']
        self.splits = setting.get('splits')
        self.seq_lens = problem.seq_lens.view(torch.uint32)

    @contextlib.contextmanager
    def _splits(self):
        if self.splits is not None:
            os.environ[XQA_SPLITS_VARIABLE] = str(self.splits)
        try:
            yield
        finally:
            os.environ.pop(XQA_SPLITS_VARIABLE, None)

    def run(self, kv_set):
        problem = self.problem
        with self._splits():
            self.attention(self.q, (problem.k_sets[kv_set], problem.v_sets[kv_set]),
                           self.workspace, problem.block_table, self.seq_lens,
                           problem.block_table.shape[1] * problem.row.page_size,
                           bmm1_scale=problem.sm_scale, bmm2_scale=1.0, out=self.out,
                           kv_layout='NHD', enable_pdl=self.pdl)
