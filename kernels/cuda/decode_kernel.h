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

// DecodeArguments::fresh_tokens: the preceding grid may write any token, length or table entry.
inline constexpr std::int32_t kAllTokens = INT32_MAX;

// Page sizes are multiples of this: the copy engine's swizzle repeats every 8 rows.
inline constexpr std::int32_t kPageMultiple = 8;

// The arguments of one launch, passed by value: they live in constant memory.
struct DecodeArguments {
  CUtensorMap k_map;  // box_map() of the K pool
  CUtensorMap v_map;  // box_map() of the V pool
  kernels::DecodeParams params;
  scheduler::PlanView plan;
  std::int32_t box_tokens;  // tokens that one copy brings
  // With dependent launch, what may be read before the preceding grid has ended: seq_lens,
  // block_table and all tokens of a request but so many at its end; nothing for kAllTokens.
  std::int32_t fresh_tokens;
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
