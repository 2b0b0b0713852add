// The arguments of one decode attention call, read by every kernel. All strides are in elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/timeline.h"

namespace headrace::kernels {

enum class DType : std::uint8_t { kBFloat16, kFloat16, kFloat32, kFloat8E4M3 };

constexpr std::size_t dtype_bytes(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return 4;
    case DType::kFloat8E4M3:
      return 1;
    default:
      return 2;
  }
}

// A paged pool of keys or values: element (page, token in page, head, d) lies at
// page * page_stride + token * token_stride + head * head_stride + d.
struct PagedPool {
  const void* data;
  std::int64_t page_stride;
  std::int64_t token_stride;
  std::int64_t head_stride;
};

struct DecodeParams {
  // q [num_requests, num_qo_heads, head_dim]
  const void* q;
  std::int64_t q_request_stride;
  std::int64_t q_head_stride;

  PagedPool k;  // [num_pages, page_size, num_kv_heads, head_dim] in any order of the middle two
  PagedPool v;

  // block_table [num_requests, >= ceil(seq_len / page_size)]: page ids. Entries at or past
  // ceil(seq_len / page_size) are never read.
  const std::int32_t* block_table;
  std::int64_t block_table_stride;
  const std::int32_t* seq_lens;  // [num_requests] tokens, live

  const float* k_scale;  // [num_kv_heads], or null for 1
  const float* v_scale;  // [num_kv_heads], or null for 1

  // out [num_requests, num_qo_heads, head_dim]
  void* out;
  std::int64_t out_request_stride;
  std::int64_t out_head_stride;

  // lse [num_requests, num_qo_heads], natural log, -inf for length 0; or null
  float* lse;
  std::int64_t lse_request_stride;
  std::int64_t lse_head_stride;

  TimelineRecord* timeline;  // [items of the plan], or null: no records

  float* partials;  // PartialLayout, max_partials slots

  float sm_scale;  // multiplies q . k
  std::int32_t num_requests;
  std::int32_t num_qo_heads;
  std::int32_t num_kv_heads;
  std::int32_t head_dim;
  std::int32_t page_size;  // tokens
  std::int64_t num_pages;  // pages in each pool
  DType q_dtype;
  DType kv_dtype;
  DType out_dtype;
};

// A partial is the unnormalised result of one split for all query heads of its KV head, in float32:
// O [group, head_dim], running max [group], running sum [group], padded to 16 bytes. An empty split
// leaves O = 0, max = -inf, sum = 0.
constexpr std::size_t partial_floats(std::size_t group, std::size_t head_dim) {
  return (group * (head_dim + 2) + 3) / 4 * 4;
}

}  // namespace headrace::kernels
