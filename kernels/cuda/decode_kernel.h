// What the runtime needs to know of the CUDA kernels: plain C++, no device code.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/decode_params.h"
#include "scheduler/plan_layout.h"

namespace headrace::cuda {

inline constexpr std::int32_t kHeadDim = 128;

// Page sizes are multiples of this: the copy engine's swizzle repeats every 8 rows.
inline constexpr std::int32_t kPageMultiple = 8;

// What happened to one item, in nanoseconds of the GPU's global timer.
struct TimelineRecord {
  std::uint32_t worker;      // block that ran the item
  std::uint32_t merged;      // 1: this item arrived last and merged
  std::uint64_t claimed;     // the claim came back
  std::uint64_t issued;      // first copy about to be issued
  std::uint64_t first_byte;  // first stage of the item arrived
  std::uint64_t last_byte;   // last stage arrived
  std::uint64_t computed;    // all warps have computed their stages
  std::uint64_t finished;    // output or partial written, merge included
};

// The arguments of one launch, passed by value: they live in constant memory.
struct DecodeArguments {
  CUtensorMap k_map;  // box_map() of the K pool
  CUtensorMap v_map;  // box_map() of the V pool
  kernels::DecodeParams params;
  scheduler::PlanView plan;
  TimelineRecord* timeline;  // [items of the plan], or null: no records
  std::int32_t box_tokens;   // tokens that one copy brings
};

// One instantiation of the kernel and what its launch needs.
struct DecodeKernel {
  kernels::DType q;
  kernels::DType kv;
  std::int32_t max_group;  // the widest it takes in one pass; the last of its types takes any
  void (*function)(DecodeArguments);  // a __global__ function
  std::int32_t threads;
  std::size_t shared_bytes;   // dynamic shared memory
  std::int32_t stage_tokens;  // tokens in one stage of the ring
};

// Every instantiation.
std::span<const DecodeKernel> decode_kernels();

// The kernel for these types and group, or null if there is none.
const DecodeKernel* find_decode_kernel(kernels::DType q, kernels::DType kv, std::int32_t group);

// Tokens of one copy: the largest power of two from 8 to stage_tokens that divides the page size.
constexpr std::int32_t box_tokens(std::int32_t page_size, std::int32_t stage_tokens) {
  std::int32_t tokens = stage_tokens;
  while (page_size % tokens != 0) tokens /= 2;
  return tokens;
}

}  // namespace headrace::cuda
