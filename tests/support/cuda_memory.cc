#include "tests/support/cuda_memory.h"

#include <cuda_runtime_api.h>

#include "tests/support/cuda_check.h"

namespace headrace::tests {
namespace {

// Copies from pageable memory, and fills, may still be under way when the call returns.
void wait() { require_cuda(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize"); }

}  // namespace

std::byte* cuda_allocate(std::size_t bytes) {
  void* memory = nullptr;
  require_cuda(cudaMalloc(&memory, bytes), "cudaMalloc");
  return static_cast<std::byte*>(memory);
}

void cuda_free(std::byte* memory) noexcept { cudaFree(memory); }

void cuda_fill(std::byte* begin, std::size_t bytes, std::byte value) {
  require_cuda(cudaMemset(begin, static_cast<int>(value), bytes), "cudaMemset");
  wait();
}

void cuda_upload(std::byte* target, std::span<const std::byte> bytes) {
  require_cuda(cudaMemcpy(target, bytes.data(), bytes.size(), cudaMemcpyHostToDevice),
               "cudaMemcpy to the device");
  wait();
}

void cuda_download(std::span<std::byte> target, const std::byte* source) {
  require_cuda(cudaMemcpy(target.data(), source, target.size(), cudaMemcpyDeviceToHost),
               "cudaMemcpy from the device");
}

}  // namespace headrace::tests
