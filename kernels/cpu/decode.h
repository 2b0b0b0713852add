// The CPU executor's inner part: what one worker does from its first claim to its last.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/decode_params.h"
#include "scheduler/plan_layout.h"

namespace headrace::cpu {

// A plan may be made for fewer KV heads than there are, a divisor: each of its items then covers
// kv_heads_per_item = params.num_kv_heads / header.num_kv_heads neighbouring heads, and a partial
// slot holds that many times partial_floats(group, head_dim). Pages of an NHD pool are then read in
// the order of memory, which is more than twice as fast as one head at a time.

// Scratch memory of one worker in bytes (a multiple of 64): a function of shapes, not of lengths.
std::size_t worker_scratch_bytes(std::int32_t group, std::int32_t head_dim,
                                 std::int32_t kv_heads_per_item = 1);

// Runs the queue as worker `worker` of `num_workers` until it is empty, merging where it arrives
// last. Every worker of a run calls this once, each with its own 64-byte aligned scratch. Allocates
// nothing, waits for nobody, throws nothing.
void run_worker(const kernels::DecodeParams& params, const scheduler::PlanView& plan,
                std::uint32_t worker, std::uint32_t num_workers, void* scratch) noexcept;

// The SIMD instruction set that run_worker dispatches to on this machine, e.g. "AVX2".
const char* simd_target() noexcept;

}  // namespace headrace::cpu
