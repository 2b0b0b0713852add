"""Attention in float64 on the dequantised cache, and how far a system's output is from it."""

import math

import torch

MAX_TOKENS = 1 << 22  # of the sampled requests and KV heads together
MAX_PAIRS = 256


def sample(problem, seed):
    """(request, KV head) pairs: all of them, or the longest, the shortest and random ones."""
    lengths = problem.seq_lens_list
    num_heads = problem.row.kv_heads
    order = torch.randperm(len(lengths) * num_heads,
                           generator=torch.Generator().manual_seed(seed)).tolist()
    pairs = [divmod(number, num_heads) for number in order]
    pairs.sort(key=lambda pair: lengths[pair[0]] not in (min(lengths), max(lengths)))
    chosen, tokens = [], 0
    for pair in pairs:
        if chosen and (len(chosen) == MAX_PAIRS or tokens + lengths[pair[0]] > MAX_TOKENS):
            continue
        chosen.append(pair)
        tokens += lengths[pair[0]]
    return chosen


def _gather(pool, pages, head):
    """[tokens of the pages, head_dim] of a pool. By bytes: not every dtype can be indexed."""
    return pool.view(torch.uint8)[pages, :, head].view(pool.dtype).flatten(0, 1)


def attention(problem, kv_set, pairs):
    """float64 [len(pairs), group, head_dim]: the exact outputs of these requests and KV heads."""
    group = problem.row.group
    outputs = []
    for request, head in pairs:
        length = problem.seq_lens_list[request]
        pages = problem.block_table[request, :problem.num_pages_list[request]].long()
        k, v = (_gather(cache[kv_set], pages, head)[:length].float().double()
                for cache in (problem.k_sets, problem.v_sets))
        if problem.k_scale is not None:
            k, v = k * problem.k_scale[head].double(), v * problem.v_scale[head].double()
        q = problem.q[request, head * group:(head + 1) * group].double()
        outputs.append(torch.softmax(problem.sm_scale * (q @ k.T), -1) @ v)
    return torch.stack(outputs)


def select(problem, out, pairs):
    """The same outputs of a system's `out`, [batch, qo_heads, head_dim]."""
    row = problem.row
    heads = out.view(row.batch, row.kv_heads, row.group, row.head_dim)
    return torch.stack([heads[request, head] for request, head in pairs]).double()


def compare(actual, expected):
    """RMS error in per cent of the reference's RMS; largest error in per cent of its largest value.

    Both are NaN if any output is.
    """
    error = (actual - expected).abs()
    rms_pct = 100 * (error.square().sum() / expected.square().sum()).sqrt().item()
    max_pct = 100 * (error.max() / expected.abs().max()).item()
    return (rms_pct, max_pct) if math.isfinite(rms_pct) else (math.nan, math.nan)
