// Memory of the current CUDA device, for DeviceBuffer. Every call has taken effect when it returns,
// for all streams, and throws std::runtime_error with CUDA's text where one fails. In a build
// without CUDA all of them throw.
#pragma once

#include <cstddef>
#include <span>

namespace headrace::tests {

std::byte* cuda_allocate(std::size_t bytes);
void cuda_free(std::byte* memory) noexcept;
void cuda_fill(std::byte* begin, std::size_t bytes, std::byte value);
void cuda_upload(std::byte* target, std::span<const std::byte> bytes);
void cuda_download(std::span<std::byte> target, const std::byte* source);

}  // namespace headrace::tests
