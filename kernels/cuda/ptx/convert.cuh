// One function per conversion or arithmetic instruction that has no C++ spelling.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace headrace::cuda::ptx {

// Two e4m3 values in the low 16 bits to two fp16 values: exact, NaN included.
__device__ __forceinline__ std::uint32_t widen_e4m3x2(std::uint32_t pair) {
  std::uint32_t result;
  asm("{\n"
      ".reg .b16 low, high;\n"
      "mov.b32 {low, high}, %1;\n"
      "cvt.rn.f16x2.e4m3x2 %0, low;\n"
      "}\n"
      : "=r"(result)
      : "r"(pair));
  return result;
}

// The same for the high 16 bits.
__device__ __forceinline__ std::uint32_t widen_e4m3x2_high(std::uint32_t pair) {
  std::uint32_t result;
  asm("{\n"
      ".reg .b16 low, high;\n"
      "mov.b32 {low, high}, %1;\n"
      "cvt.rn.f16x2.e4m3x2 %0, high;\n"
      "}\n"
      : "=r"(result)
      : "r"(pair));
  return result;
}

// Rounds two floats to nearest even and packs them, `low` in the low half.
template <class Element>
__device__ __forceinline__ std::uint32_t pack(float low, float high);

template <>
__device__ __forceinline__ std::uint32_t pack<__nv_bfloat16>(float low, float high) {
  std::uint32_t result;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}

template <>
__device__ __forceinline__ std::uint32_t pack<__half>(float low, float high) {
  std::uint32_t result;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}

template <class Element>
__device__ __forceinline__ float2 unpack(std::uint32_t pair);

template <>
__device__ __forceinline__ float2 unpack<__nv_bfloat16>(std::uint32_t pair) {
  return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
}

template <>
__device__ __forceinline__ float2 unpack<__half>(std::uint32_t pair) {
  return __half22float2(*reinterpret_cast<const __half2*>(&pair));
}

// 2^x with a relative error of about 2^-22; 0 for -inf.
__device__ __forceinline__ float exp2_approximate(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

}  // namespace headrace::cuda::ptx
