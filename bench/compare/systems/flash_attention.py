"""FlashAttention with block tables: FA3 and FA2 as vLLM's wheel builds them.

Only the two libraries of the wheel are loaded, not vLLM itself. They use PyTorch's stable ABI, so
they run beside another PyTorch than the one the wheel asks for.
"""

import functools

import torch

from .. import packages
from .base import PackagedSystem, Runner


class FlashAttentionSystem(PackagedSystem):
    distribution = 'vllm'
    library = ''

    @functools.cached_property
    def missing(self):
        reason = packages.why_not(self.distribution)
        if reason is None and not self.library_path().exists():
            reason = f'{self.library} is not in the installed {self.distribution}'
        if reason is None:
            try:
                torch.ops.load_library(self.library_path())
            except OSError as error:
                reason = f'{self.library} cannot be loaded: {error}'
        return reason

    def library_path(self):
        return packages.file_of(self.distribution, f'vllm/vllm_flash_attn/{self.library}')

    def libraries(self):
        return [] if packages.why_not(self.distribution) else [self.library_path()]


class FlashAttention3(FlashAttentionSystem):
    name = 'fa3'
    title = 'FlashAttention-3'
    library = '_vllm_fa3_C.abi3.so'

    def extra_kernels(self, row):
        return FlashAttention3Runner.NUM_KERNELS if row.head_scales else 0

    def settings(self, problem):
        """The mask changes nothing for one query token, but the tile and the order of the work."""
        return [{'causal': causal, 'num_splits': splits}
                for causal in (True, False) for splits in (0, 1, 32)]  # 0: its own choice

    def bind(self, problem, setting):
        return FlashAttention3Runner(problem, setting)


class FlashAttention3Runner(Runner):
    """An fp8 cache needs an fp8 query: one kernel before the call. Scales per head are its own."""

    NUM_KERNELS = 1

    def __init__(self, problem, setting):
        super().__init__(problem)
        row = problem.row
        self.causal, self.num_splits = setting['causal'], setting['num_splits']
        self.max_seq_len = max(problem.seq_lens_list)
        self.cu_seqlens_q = torch.arange(row.batch + 1, dtype=torch.int32, device='cuda')
        self.metadata = None
        self.q = problem.q
        self.k_descale = self.v_descale = None
        if problem.k_scale is not None:
            self.q = torch.empty_like(problem.q, dtype=problem.cache_dtype)
            self.k_descale = problem.k_scale[None].expand(row.batch, row.kv_heads)
            self.v_descale = problem.v_scale[None].expand(row.batch, row.kv_heads)
            self.scale_inputs()

    def scale_inputs(self):
        """Normally distributed queries need no scale of their own."""
        if self.q is not self.problem.q:
            self.q.copy_(self.problem.q)

    def plan(self):
        row = self.problem.row
        self.metadata = torch.ops._vllm_fa3_C.get_scheduler_metadata(
            batch_size=row.batch, max_seqlen_q=1, max_seqlen_k=self.max_seq_len,
            num_heads=row.qo_heads, num_heads_k=row.kv_heads, headdim=row.head_dim,
            headdim_v=row.head_dim, qkv_dtype=self.problem.cache_dtype,
            seqused_k=self.problem.seq_lens, cu_seqlens_q=self.cu_seqlens_q, cu_seqlens_k=None,
            cu_seqlens_k_new=None, seqused_q=None, leftpad_k=None, page_size=row.page_size,
            max_seqlen_k_new=0, is_causal=self.causal, window_size_left=-1, window_size_right=-1,
            has_softcap=False, num_splits=self.num_splits, pack_gqa=None, sm_margin=0)

    def run(self, kv_set):
        problem = self.problem
        torch.ops._vllm_fa3_C.fwd(
            q=self.q, k=problem.k_sets[kv_set], v=problem.v_sets[kv_set], k_new=None, v_new=None,
            q_v=None, out=self.out, cu_seqlens_q=self.cu_seqlens_q, cu_seqlens_k=None,
            cu_seqlens_k_new=None, seqused_q=None, seqused_k=problem.seq_lens, max_seqlen_q=1,
            max_seqlen_k=self.max_seq_len, page_table=problem.block_table, kv_batch_idx=None,
            leftpad_k=None, rotary_cos=None, rotary_sin=None, seqlens_rotary=None, q_descale=None,
            k_descale=self.k_descale, v_descale=self.v_descale, softmax_scale=problem.sm_scale,
            is_causal=self.causal, window_size_left=-1, window_size_right=-1, softcap=0.0,
            is_rotary_interleaved=True, scheduler_metadata=self.metadata,
            num_splits=self.num_splits, pack_gqa=None, sm_margin=0, s_aux=None, cp_world_size=1,
            cp_rank=0, cp_tot_seqused_k=None)


class FlashAttention2(FlashAttentionSystem):
    name = 'fa2'
    title = 'FlashAttention-2'
    library = '_vllm_fa2_C.abi3.so'

    def unsupported(self, row):
        if row.dtype != 'bf16':
            return f'needs a bf16 cache, given {row.dtype}'
        if row.page_size % 16 != 0:
            return f'needs pages of a multiple of 16, given {row.page_size}'
        return None

    def settings(self, problem):
        return [{'num_splits': 0}, {'num_splits': 1}]  # 0: its own choice

    def bind(self, problem, setting):
        return FlashAttention2Runner(problem, setting)


class FlashAttention2Runner(Runner):
    def __init__(self, problem, setting):
        super().__init__(problem)
        self.num_splits = setting['num_splits']
        self.cu_seqlens_q = torch.arange(problem.row.batch + 1, dtype=torch.int32, device='cuda')

    def run(self, kv_set):
        problem = self.problem
        torch.ops._vllm_fa2_C.varlen_fwd(
            q=problem.q, k=problem.k_sets[kv_set], v=problem.v_sets[kv_set], out=self.out,
            cu_seqlens_q=self.cu_seqlens_q, cu_seqlens_k=self.cu_seqlens_q,  # the latter unused
            seqused_k=problem.seq_lens, leftpad_k=None, block_table=problem.block_table,
            alibi_slopes=None, max_seqlen_q=1, max_seqlen_k=max(problem.seq_lens_list),
            p_dropout=0.0, softmax_scale=problem.sm_scale, zero_tensors=False, is_causal=False,
            window_size_left=-1, window_size_right=-1, softcap=0.0, return_softmax=False,
            num_splits=self.num_splits, gen=None)
