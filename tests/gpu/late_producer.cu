#include "tests/gpu/late_producer.h"

namespace headrace::tests {
namespace {

__device__ std::uint64_t now_ns() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void write_late(LateCopies copies, std::uint32_t sleep_us) {
  asm volatile("griddepcontrol.launch_dependents;");
  const std::uint64_t end = now_ns() + std::uint64_t{sleep_us} * 1000;
  while (now_ns() < end) __nanosleep(1000);
  const std::size_t first = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (int i = 0; i < copies.count; ++i) {
    const LateCopy& copy = copies.copy[i];
    for (std::size_t at = first; at < copy.bytes; at += step) {
      static_cast<unsigned char*>(copy.to)[at] = static_cast<const unsigned char*>(copy.from)[at];
    }
  }
}

}  // namespace

cudaError_t produce_late(const LateCopies& copies, std::uint32_t sleep_us, cudaStream_t stream) {
  constexpr int kBlocks = 16;
  constexpr int kThreads = 256;
  write_late<<<kBlocks, kThreads, 0, stream>>>(copies, sleep_us);
  return cudaGetLastError();
}

}  // namespace headrace::tests
