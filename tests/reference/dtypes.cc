#include "tests/reference/dtypes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace headrace::tests {
namespace {

// Not memcpy: with a size known only at run time it is a call for every element.
std::uint32_t load_code(const std::byte* element, std::size_t bytes) {
  std::uint32_t code = 0;
  for (std::size_t b = 0; b < bytes; ++b) {
    code |= std::to_integer<std::uint32_t>(element[b]) << (8 * b);
  }
  return code;
}

struct Format {
  std::size_t bytes;
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;

  std::uint32_t sign_code() const { return 1u << (exponent_bits + mantissa_bits); }
  int smallest_exponent() const { return 2 - (1 << (exponent_bits - 1)); }
  // The first code of the largest exponent: infinity where there is one.
  std::uint32_t top_code() const { return ((1u << exponent_bits) - 1) << mantissa_bits; }
  std::uint32_t nan_code() const { return sign_code() - 1; }
  std::uint32_t largest_finite_code() const {
    return has_infinity ? top_code() - 1 : nan_code() - 1;
  }
};

Format format_of(headrace_dtype dtype) {
  switch (dtype) {
    case HEADRACE_BFLOAT16:
      return {2, 8, 7, true};
    case HEADRACE_FLOAT16:
      return {2, 5, 10, true};
    case HEADRACE_FLOAT32:
      return {4, 8, 23, true};
    default:
      return {1, 4, 3, false};
  }
}

// The value of every code of a type of one or two bytes: tensors of millions of elements are read.
const std::vector<float>& values_of(headrace_dtype dtype) {
  const auto all_codes = [](headrace_dtype type) {
    std::vector<float> values(std::size_t{1} << (8 * dtype_bytes(type)));
    for (std::uint32_t code = 0; code < values.size(); ++code) {
      values[code] = static_cast<float>(decode(type, code));
    }
    return values;
  };
  static const std::vector<float> bf16 = all_codes(HEADRACE_BFLOAT16);
  static const std::vector<float> fp16 = all_codes(HEADRACE_FLOAT16);
  static const std::vector<float> e4m3 = all_codes(HEADRACE_FLOAT8_E4M3);
  if (dtype == HEADRACE_BFLOAT16) return bf16;
  return dtype == HEADRACE_FLOAT16 ? fp16 : e4m3;
}

}  // namespace

std::size_t dtype_bytes(headrace_dtype dtype) { return format_of(dtype).bytes; }

double decode(headrace_dtype dtype, std::uint32_t code) {
  const Format format = format_of(dtype);
  const double sign = (code & format.sign_code()) != 0 ? -1.0 : 1.0;
  const std::uint32_t magnitude = code & ~format.sign_code();
  if (magnitude > format.largest_finite_code()) {
    return format.has_infinity && magnitude == format.top_code()
               ? sign * std::numeric_limits<double>::infinity()
               : std::numeric_limits<double>::quiet_NaN();
  }
  const std::uint32_t hidden_bit = 1u << format.mantissa_bits;
  const std::uint32_t mantissa = magnitude & (hidden_bit - 1);
  const int exponent_field = static_cast<int>(magnitude >> format.mantissa_bits);
  const int unit = format.smallest_exponent() - format.mantissa_bits;
  if (exponent_field == 0) return sign * std::ldexp(mantissa, unit);
  return sign * std::ldexp(hidden_bit + mantissa, unit + exponent_field - 1);
}

std::uint32_t encode(headrace_dtype dtype, double value) {
  const Format format = format_of(dtype);
  const std::uint32_t sign = std::signbit(value) ? format.sign_code() : 0;
  if (std::isnan(value)) return sign | format.nan_code();
  const std::uint32_t largest =
      format.has_infinity ? format.top_code() : format.largest_finite_code();
  if (std::isinf(value)) return sign | largest;

  // Rounded to a whole number of units, which carries into the exponent where it must.
  const int exponent = value == 0 ? format.smallest_exponent()
                                  : std::max(std::ilogb(value), format.smallest_exponent());
  const double units = std::nearbyint(std::ldexp(std::abs(value), format.mantissa_bits - exponent));
  const std::int64_t code =
      (std::int64_t{exponent - format.smallest_exponent()} << format.mantissa_bits) +
      static_cast<std::int64_t>(units);
  return sign | static_cast<std::uint32_t>(std::min<std::int64_t>(code, largest));
}

double half_ulp(headrace_dtype dtype, double magnitude) {
  const Format format = format_of(dtype);
  const int exponent = magnitude == 0 ? format.smallest_exponent()
                                      : std::max(std::ilogb(magnitude), format.smallest_exponent());
  return std::ldexp(0.5, exponent - format.mantissa_bits);
}

void load_row(headrace_dtype dtype, std::span<const std::byte> tensor, std::int64_t index,
              std::span<float> row) {
  const std::size_t bytes = dtype_bytes(dtype);
  const auto source = tensor.subspan(static_cast<std::size_t>(index) * bytes, row.size() * bytes);
  if (dtype == HEADRACE_FLOAT32) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = std::bit_cast<float>(load_code(&source[i * bytes], bytes));
    }
    return;
  }
  const std::vector<float>& values = values_of(dtype);
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] = values[load_code(&source[i * bytes], bytes)];
  }
}

void store_row(headrace_dtype dtype, std::span<std::byte> tensor, std::int64_t index,
               std::span<const float> row) {
  const std::size_t bytes = dtype_bytes(dtype);
  const auto target = tensor.subspan(static_cast<std::size_t>(index) * bytes, row.size() * bytes);
  for (std::size_t i = 0; i < row.size(); ++i) {
    store_code(&target[i * bytes], bytes, encode(dtype, row[i]));
  }
}

void fill_row(headrace_dtype dtype, std::span<std::byte> tensor, std::int64_t index,
              std::int64_t count, std::uint32_t code) {
  const std::size_t bytes = dtype_bytes(dtype);
  const auto target = tensor.subspan(static_cast<std::size_t>(index) * bytes,
                                     static_cast<std::size_t>(count) * bytes);
  for (std::size_t i = 0; i < target.size(); i += bytes) store_code(&target[i], bytes, code);
}

}  // namespace headrace::tests
