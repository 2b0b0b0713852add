// Kernels around a decode step that is launched dependent. The one before it is at its worst: it
// lets the next kernel start at once, and writes late.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace headrace::tests {

struct LateCopy {
  void* to;
  const void* from;
  std::size_t bytes;
};

inline constexpr int kMaxLateCopies = 5;

struct LateCopies {
  LateCopy copy[kMaxLateCopies];
  int count;
};

// Launches the kernel: every block allows the next kernel to start, sleeps for `sleep_us`, and then
// does its part of the copies.
cudaError_t produce_late(const LateCopies& copies, std::uint32_t sleep_us, cudaStream_t stream);

// Launches a kernel, dependent, that waits for the kernel before it and then does the copy.
cudaError_t consume_dependent(const LateCopy& copy, cudaStream_t stream);

}  // namespace headrace::tests
