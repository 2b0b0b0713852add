"""FlashInfer's kernels are compiled at first use; here all that some rows need, side by side.

Only the time of the first run depends on this: a kernel missing here is compiled when it is used.
The generators are not part of the package's public interface, but of its pinned version.
"""

import torch

from ..problem import TORCH_DTYPES

NO_POSITIONS = 0  # PosEncodingMode.NONE


def _decode_key(dtype, head_dim):
    """(q, cache, out, index, head dim of K and V, positions, sliding window, soft cap)."""
    return (torch.bfloat16, TORCH_DTYPES[dtype], torch.bfloat16, torch.int32, head_dim, head_dim,
            NO_POSITIONS, False, False)


def cuda_core_modules(rows):
    from flashinfer.jit import gen_batch_decode_module
    return [gen_batch_decode_module(*_decode_key(dtype, head_dim))
            for dtype, head_dim in dict.fromkeys((row.dtype, row.head_dim) for row in rows)]


def tensor_core_modules(rows):
    from flashinfer.jit.attention.modules import _gen_batch_prefill_primary_module
    half_precision_scores = scales_per_token = False
    return [_gen_batch_prefill_primary_module('fa2', *_decode_key(dtype, head_dim),
                                              half_precision_scores, scales_per_token)
            for dtype, head_dim in dict.fromkeys((row.dtype, row.head_dim) for row in rows)]


def persistent_modules(rows):
    from flashinfer.jit.attention.modules import _gen_batch_attention_primary_module
    soft_cap = profiler = False
    return [_gen_batch_attention_primary_module(*_decode_key(dtype, head_dim)[:7], soft_cap,
                                                profiler)
            for dtype, head_dim in dict.fromkeys((row.dtype, row.head_dim) for row in rows)]


def xqa_modules(rows):
    from flashinfer.jit.xqa import gen_xqa_module
    keys = dict.fromkeys((row.dtype, row.page_size, row.head_dim, row.group) for row in rows)
    sliding_window = False
    return [gen_xqa_module(torch.bfloat16, TORCH_DTYPES[dtype], page_size, head_dim, group,
                           sliding_window, torch.bfloat16)
            for dtype, page_size, head_dim, group in keys]


def compile_modules(modules):
    from flashinfer.jit.core import build_jit_specs
    build_jit_specs(modules)
