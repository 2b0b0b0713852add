// The caller's description of the attention, checked, with every stride resolved.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/headrace.h"
#include "kernels/decode_params.h"

namespace headrace::runtime {

// Alignment of plan buffers and workspaces in bytes.
inline constexpr std::size_t kBufferAlignment = 128;

// Limits that keep every offset of the kernels within 63 bits.
inline constexpr std::int32_t kMaxGroup = 64;
inline constexpr std::int32_t kMaxPageSize = 1 << 20;
inline constexpr std::int64_t kMaxStride = std::int64_t{1} << 38;

// In elements. Element (page, token, head, d) is at page * page + token * token + head * head + d.
struct PoolStrides {
  std::int64_t page;
  std::int64_t token;
  std::int64_t head;
};

// In elements, of q, out and lse.
struct RowStrides {
  std::int64_t request;
  std::int64_t head;
};

struct Description {
  std::int32_t num_qo_heads;
  std::int32_t num_kv_heads;
  std::int32_t group;  // query heads per KV head
  std::int32_t head_dim;
  std::int32_t page_size;  // tokens
  kernels::DType q_dtype;
  kernels::DType kv_dtype;
  kernels::DType out_dtype;
  float sm_scale;
  PoolStrides k;
  PoolStrides v;
  RowStrides q;
  RowStrides out;
  RowStrides lse;
};

// Checks `desc` for up to max_requests requests and fills `resolved`. Errors: INVALID_ARGUMENT,
// UNSUPPORTED.
headrace_status resolve_description(const headrace_attention_desc& desc, std::int32_t max_requests,
                                    Description& resolved) noexcept;

}  // namespace headrace::runtime
