#include "runtime/strides.h"

#include <algorithm>

#include "runtime/status.h"

namespace headrace::runtime {
namespace {

// One dimension of a tensor: desc.<tensor>_<name>_stride.
struct Axis {
  const char* name;
  std::int64_t stride;
  std::int64_t extent;
};

// The stride of whatever encloses this axis, without gaps. The stride of an axis with one entry
// does not matter, here and in check_apart().
std::int64_t packed_outside(const Axis& axis, std::int32_t width) noexcept {
  return axis.extent == 1 ? width : axis.stride * axis.extent;
}

bool check_bounds(const char* tensor, const Axis& axis) noexcept {
  if (0 <= axis.stride && axis.stride <= kMaxStride) return true;
  fail(HEADRACE_INVALID_ARGUMENT, "desc.{}_{}_stride is {}; needed: 0 (packed) to {} elements",
       tensor, axis.name, axis.stride, kMaxStride);
  return false;
}

// Rows of `width` elements lie apart: the larger stride clears all rows along the smaller one.
bool check_apart(const char* tensor, const Axis& a, const Axis& b, std::int32_t width) noexcept {
  for (const Axis& axis : {a, b}) {
    if (axis.extent > 1 && axis.stride < width) {
      fail(HEADRACE_INVALID_ARGUMENT, "desc.{}_{}_stride is {}; needed: at least {} elements",
           tensor, axis.name, axis.stride, width);
      return false;
    }
  }
  if (a.extent == 1 || b.extent == 1) return true;
  const auto& [inner, outer] =
      std::minmax(a, b, [](const Axis& x, const Axis& y) { return x.stride < y.stride; });
  const std::int64_t needed = (inner.extent - 1) * inner.stride + width;
  if (outer.stride >= needed) return true;
  fail(HEADRACE_INVALID_ARGUMENT,
       "desc.{}_{}_stride is {}; needed: at least {} elements, to clear {} rows of "
       "desc.{}_{}_stride {}",
       tensor, outer.name, outer.stride, needed, inner.extent, tensor, inner.name, inner.stride);
  return false;
}

}  // namespace

bool resolve_pool_strides(const char* tensor, const headrace_attention_desc& desc,
                          PoolStrides& strides) noexcept {
  Axis page{"page", strides.page, 1};
  Axis token{"token", strides.token, desc.page_size};
  Axis head{"head", strides.head, desc.num_kv_heads};
  if (!(check_bounds(tensor, page) && check_bounds(tensor, token) && check_bounds(tensor, head))) {
    return false;
  }
  // Filled from the inside out. Each product stays below 2^58, because what goes into it has been
  // checked before.
  const bool tokens_outside = raw_value(desc.layout) == HEADRACE_NHD;
  Axis& inner = tokens_outside ? head : token;
  Axis& outer = tokens_outside ? token : head;
  if (inner.stride == 0) inner.stride = desc.head_dim;
  if (outer.stride == 0) outer.stride = packed_outside(inner, desc.head_dim);
  if (!(check_bounds(tensor, outer) && check_apart(tensor, inner, outer, desc.head_dim))) {
    return false;
  }
  if (page.stride == 0) {
    page.stride =
        std::max(packed_outside(inner, desc.head_dim), packed_outside(outer, desc.head_dim));
  }
  if (!check_bounds(tensor, page)) return false;
  if (page.stride < desc.head_dim) {
    fail(HEADRACE_INVALID_ARGUMENT, "desc.{}_page_stride is {}; needed: at least {} elements",
         tensor, page.stride, desc.head_dim);
    return false;
  }
  strides = {page.stride, token.stride, head.stride};
  return true;
}

bool resolve_row_strides(const char* tensor, std::int32_t num_requests, std::int32_t num_heads,
                         std::int32_t width, RowStrides& strides) noexcept {
  Axis request{"request", strides.request, num_requests};
  Axis head{"head", strides.head, num_heads};
  if (!(check_bounds(tensor, request) && check_bounds(tensor, head))) return false;
  if (head.stride == 0) head.stride = width;
  if (request.stride == 0) request.stride = packed_outside(head, width);
  if (!(check_bounds(tensor, request) && check_apart(tensor, head, request, width))) return false;
  strides = {request.stride, head.stride};
  return true;
}

}  // namespace headrace::runtime
