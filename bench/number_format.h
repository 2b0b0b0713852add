// The cache's number formats, apart from the library's own conversions: the check must not share
// their mistakes.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "headrace/headrace.h"

namespace headrace::bench {

struct NumberFormat {
  int exponent_bits;
  int mantissa_bits;
  std::uint32_t first_special;  // from this magnitude on: infinity or NaN

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  std::size_t bytes() const {
    return static_cast<std::size_t>(1 + exponent_bits + mantissa_bits) / 8;
  }
};

inline NumberFormat format_of(headrace_dtype dtype) {
  switch (dtype) {
    case HEADRACE_BFLOAT16:
      return {8, 7, 0x7f80};
    case HEADRACE_FLOAT16:
      return {5, 10, 0x7c00};
    case HEADRACE_FLOAT32:
      return {8, 23, 0x7f800000};
    case HEADRACE_FLOAT8_E4M3:
      return {4, 3, 0x7f};
  }
  return {};
}

// Rounds towards zero, and what is too small to be normal to zero; for values within range.
inline std::uint32_t encode(float value, const NumberFormat& format) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const int exponent = static_cast<int>(bits >> 23 & 0xff) - 127 + format.bias();
  const std::uint32_t sign = bits >> 31 << (format.exponent_bits + format.mantissa_bits);
  if (exponent <= 0) return sign;
  const std::uint32_t mantissa = (bits & 0x7fffff) >> (23 - format.mantissa_bits);
  return sign | static_cast<std::uint32_t>(exponent) << format.mantissa_bits | mantissa;
}

// Exact. Infinities become NaN: no value here may be either.
inline double decode(std::uint32_t bits, const NumberFormat& format) {
  const int magnitude_bits = format.exponent_bits + format.mantissa_bits;
  const std::uint32_t magnitude = bits & ((std::uint32_t{1} << magnitude_bits) - 1);
  if (magnitude >= format.first_special) return std::numeric_limits<double>::quiet_NaN();
  const std::uint32_t mantissa = magnitude & ((std::uint32_t{1} << format.mantissa_bits) - 1);
  const int exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  const std::uint32_t implicit = exponent == 0 ? 0 : std::uint32_t{1} << format.mantissa_bits;
  const double value =
      std::ldexp(static_cast<double>(implicit | mantissa),
                 (exponent == 0 ? 1 : exponent) - format.bias() - format.mantissa_bits);
  return bits >> magnitude_bits & 1 ? -value : value;
}

inline double load(const void* data, std::int64_t index, const NumberFormat& format) {
  std::uint32_t bits = 0;
  const std::size_t bytes = format.bytes();
  std::memcpy(&bits, static_cast<const std::byte*>(data) + static_cast<std::size_t>(index) * bytes,
              bytes);
  return decode(bits, format);
}

inline void store(float value, void* data, std::int64_t index, const NumberFormat& format) {
  const std::uint32_t bits = encode(value, format);
  const std::size_t bytes = format.bytes();
  std::memcpy(static_cast<std::byte*>(data) + static_cast<std::size_t>(index) * bytes, &bits,
              bytes);
}

}  // namespace headrace::bench
