// Scalar conversions between float32 and the storage types, used where an item begins and ends.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/decode_params.h"

namespace headrace::cpu {

constexpr float float_of_bf16(std::uint16_t value) {
  return std::bit_cast<float>(std::uint32_t{value} << 16);
}

constexpr float float_of_f16(std::uint16_t value) {
  const std::uint32_t sign = std::uint32_t{value & 0x8000u} << 16;
  const std::uint32_t magnitude = value & 0x7fffu;
  std::uint32_t bits;
  if (magnitude < 0x0400) {  // zero or subnormal: units of 2^-24
    bits = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-24f);
  } else if (magnitude < 0x7c00) {
    bits = (magnitude << 13) + (112u << 23);  // exponent bias 15 to 127
  } else {
    bits = (magnitude << 13) | 0x7f800000u;  // infinity or NaN
  }
  return std::bit_cast<float>(sign | bits);
}

constexpr float float_of_e4m3(std::uint8_t value) {
  if ((value & 0x7fu) == 0x7fu) return std::numeric_limits<float>::quiet_NaN();
  // Moved to the places of fp16 it is the value times 2^-8: the exponent biases are 7 and 15.
  return 256.0f *
         float_of_f16(static_cast<std::uint16_t>((value & 0x80u) << 8 | (value & 0x7fu) << 7));
}

// Rounds to nearest even; a NaN stays a NaN.
inline std::uint16_t bf16_of_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// Rounds to nearest even; from 65520 on to infinity; a NaN stays a NaN.
inline std::uint16_t f16_of_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t half;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u;
  } else if (magnitude >= 0x477ff000u) {
    half = 0x7c00u;
  } else if (magnitude < 0x38800000u) {
    // Subnormal in fp16: the last place of 0.5f is 2^-24, so this addition rounds as wanted.
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  } else {
    half = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - (112u << 23)) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

// Row of `count` elements starting at element `offset` of `source` (bf16, fp16 or f32) to float32.
inline void load_row(kernels::DType dtype, const void* source, std::int64_t offset,
                     std::size_t count, float* row) {
  switch (dtype) {
    case kernels::DType::kBFloat16: {
      const auto* elements = static_cast<const std::uint16_t*>(source) + offset;
      for (std::size_t i = 0; i < count; ++i) row[i] = float_of_bf16(elements[i]);
      break;
    }
    case kernels::DType::kFloat16: {
      const auto* elements = static_cast<const std::uint16_t*>(source) + offset;
      for (std::size_t i = 0; i < count; ++i) row[i] = float_of_f16(elements[i]);
      break;
    }
    default: {
      const auto* elements = static_cast<const float*>(source) + offset;
      for (std::size_t i = 0; i < count; ++i) row[i] = elements[i];
    }
  }
}

// The inverse of load_row, with rounding to nearest even.
inline void store_row(kernels::DType dtype, const float* row, std::size_t count, void* target,
                      std::int64_t offset) {
  switch (dtype) {
    case kernels::DType::kBFloat16: {
      auto* elements = static_cast<std::uint16_t*>(target) + offset;
      for (std::size_t i = 0; i < count; ++i) elements[i] = bf16_of_float(row[i]);
      break;
    }
    case kernels::DType::kFloat16: {
      auto* elements = static_cast<std::uint16_t*>(target) + offset;
      for (std::size_t i = 0; i < count; ++i) elements[i] = f16_of_float(row[i]);
      break;
    }
    default: {
      auto* elements = static_cast<float*>(target) + offset;
      for (std::size_t i = 0; i < count; ++i) elements[i] = row[i];
    }
  }
}

}  // namespace headrace::cpu
