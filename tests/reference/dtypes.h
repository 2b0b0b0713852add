// The storage types, written out from their definitions: sign, exponent and mantissa.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/headrace.h"

namespace headrace::tests {

std::size_t dtype_bytes(headrace_dtype dtype);

// The value of a code (the element's bits, in the lowest dtype_bytes()).
double decode(headrace_dtype dtype, std::uint32_t code);

// The code nearest to `value`, ties to even. Beyond the largest finite value: infinity, and for
// e4m3, which has none, the largest value.
std::uint32_t encode(headrace_dtype dtype, double value);

// Half the distance between neighbours at `magnitude` >= 0: how far rounding can be off.
double half_ulp(headrace_dtype dtype, double magnitude);

// Writes an element. In line, for tensors of millions.
inline void store_code(std::byte* element, std::size_t bytes, std::uint32_t code) {
  for (std::size_t b = 0; b < bytes; ++b) element[b] = static_cast<std::byte>(code >> (8 * b));
}

// Elements [index, index + row.size()) of a tensor.
void load_row(headrace_dtype dtype, std::span<const std::byte> tensor, std::int64_t index,
              std::span<float> row);
void store_row(headrace_dtype dtype, std::span<std::byte> tensor, std::int64_t index,
               std::span<const float> row);
// The same with one code for all of them.
void fill_row(headrace_dtype dtype, std::span<std::byte> tensor, std::int64_t index,
              std::int64_t count, std::uint32_t code);

}  // namespace headrace::tests
