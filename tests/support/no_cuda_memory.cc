#include <stdexcept>

#include "tests/support/cuda_memory.h"

namespace headrace::tests {
namespace {

[[noreturn]] void refuse() { throw std::runtime_error("this build has no CUDA"); }

}  // namespace

std::byte* cuda_allocate(std::size_t) { refuse(); }
void cuda_free(std::byte*) noexcept {}
void cuda_fill(std::byte*, std::size_t, std::byte) { refuse(); }
void cuda_upload(std::byte*, std::span<const std::byte>) { refuse(); }
void cuda_download(std::span<std::byte>, const std::byte*) { refuse(); }

}  // namespace headrace::tests
