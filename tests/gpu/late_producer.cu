#include "kernels/cuda/ptx/dependency.cuh"
#include "kernels/cuda/sm90/timeline.cuh"
#include "tests/gpu/late_producer.h"

namespace headrace::tests {
namespace {

constexpr int kBlocks = 16;
constexpr int kThreads = 256;

// This thread's part.
__device__ void do_part(const LateCopy& copy) {
  const std::size_t step = std::size_t{kBlocks} * kThreads;
  for (std::size_t at = blockIdx.x * std::size_t{kThreads} + threadIdx.x; at < copy.bytes;
       at += step) {
    static_cast<unsigned char*>(copy.to)[at] = static_cast<const unsigned char*>(copy.from)[at];
  }
}

__global__ void write_late(LateCopies copies, std::uint32_t sleep_us) {
  cuda::ptx::allow_next_grid();
  const std::uint64_t end = cuda::sm90::global_time_ns() + std::uint64_t{sleep_us} * 1000;
  while (cuda::sm90::global_time_ns() < end) __nanosleep(1000);
  for (int i = 0; i < copies.count; ++i) do_part(copies.copy[i]);
}

__global__ void read_dependent(LateCopy copy) {
  cuda::ptx::wait_for_preceding_grid();
  do_part(copy);
}

}  // namespace

cudaError_t produce_late(const LateCopies& copies, std::uint32_t sleep_us, cudaStream_t stream) {
  write_late<<<kBlocks, kThreads, 0, stream>>>(copies, sleep_us);
  return cudaGetLastError();
}

cudaError_t consume_dependent(const LateCopy& copy, cudaStream_t stream) {
  cudaLaunchAttribute dependent{};
  dependent.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  dependent.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(kBlocks);
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  config.attrs = &dependent;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, read_dependent, copy);
}

}  // namespace headrace::tests
