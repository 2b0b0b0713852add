// Strides of a description: packed ones filled in, all of them checked.
#pragma once

#include "headrace/headrace.h"
#include "runtime/description.h"

namespace headrace::runtime {

// Both return whether the strides are good, else they have recorded a message. `tensor` is the
// prefix of the field names in headrace_attention_desc, e.g. "k" for k_page_stride.

// `strides` of a pool, 0 for packed; on success none is 0. Tokens and heads of a page must not
// overlap; pages may lie anywhere, since a pool can be a slice of a larger one.
bool resolve_pool_strides(const char* tensor, const headrace_attention_desc& desc,
                          PoolStrides& strides) noexcept;

// `strides` of [num_requests, num_heads, width], 0 for packed. No two rows may overlap.
bool resolve_row_strides(const char* tensor, std::int32_t num_requests, std::int32_t num_heads,
                         std::int32_t width, RowStrides& strides) noexcept;

}  // namespace headrace::runtime
