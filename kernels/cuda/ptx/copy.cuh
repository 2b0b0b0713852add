// One function per instruction of the copy engine.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "kernels/cuda/ptx/mbarrier.cuh"

namespace headrace::cuda::ptx {

__device__ __forceinline__ void prefetch_tensor_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// Copies one box of a 5-D tensor map to shared memory; its bytes complete on `barrier`. Elements
// outside the tensor arrive as zeros.
__device__ __forceinline__ void copy_box(void* destination, const CUtensorMap* map, int x0, int x1,
                                         int x2, int x3, int x4, std::uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(shared_address(destination)),
      "l"(map), "r"(x0), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(shared_address(barrier))
      : "memory");
}

// Copies `bytes` contiguous bytes (a multiple of 16, both sides 16-byte aligned).
__device__ __forceinline__ void copy_bytes(void* destination, const void* source,
                                           std::uint32_t bytes, std::uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(destination)),
      "l"(source), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}

}  // namespace headrace::cuda::ptx
