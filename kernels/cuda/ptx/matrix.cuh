// One function per matrix instruction: fragment loads, transposition, multiply-accumulate.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace headrace::cuda::ptx {

// Four 8x8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8.
// Lane l receives row l / 4, elements 2 * (l % 4) and the next, of each.
__device__ __forceinline__ void load_matrix_x4(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

// The same, each matrix transposed.
__device__ __forceinline__ void load_matrix_x4_transposed(std::uint32_t (&r)[4],
                                                          std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

// Transposes an 8x8 matrix of 16-bit elements held as above.
__device__ __forceinline__ std::uint32_t transpose_matrix(std::uint32_t matrix) {
  std::uint32_t result;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(matrix));
  return result;
}

// c [16, 8] += a [16, 16] b [16, 8] in float32. Lane l holds of c rows l / 4 and l / 4 + 8, columns
// 2 * (l % 4) and the next.
template <class Element>
__device__ __forceinline__ void multiply_accumulate(float (&c)[4], const std::uint32_t (&a)[4],
                                                    const std::uint32_t (&b)[2]);

template <>
__device__ __forceinline__ void multiply_accumulate<__nv_bfloat16>(float (&c)[4],
                                                                   const std::uint32_t (&a)[4],
                                                                   const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <>
__device__ __forceinline__ void multiply_accumulate<__half>(float (&c)[4],
                                                            const std::uint32_t (&a)[4],
                                                            const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace headrace::cuda::ptx
