#include "tests/support/device_buffer.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <stdexcept>

#include "tests/support/cuda_memory.h"

namespace headrace::tests {
namespace {

constexpr std::size_t kAlignment = 128;
constexpr std::size_t kGuardBytes = 1024;  // a multiple of the alignment
constexpr std::byte kGuard{0xA5};

std::byte* allocate(headrace_device device, std::size_t bytes) {
  // No pointer is null, not even to nothing.
  if (device == HEADRACE_DEVICE_CUDA) return cuda_allocate(std::max(bytes, std::size_t{1}));
  void* memory = nullptr;
  if (posix_memalign(&memory, kAlignment, bytes) != 0) throw std::bad_alloc();
  return static_cast<std::byte*>(memory);
}

void fill(headrace_device device, std::byte* begin, std::size_t bytes, std::byte value) {
  if (device == HEADRACE_DEVICE_CUDA) {
    cuda_fill(begin, bytes, value);
  } else {
    std::fill_n(begin, bytes, value);
  }
}

std::vector<std::byte> download_from(headrace_device device, const std::byte* begin,
                                     std::size_t bytes) {
  if (device != HEADRACE_DEVICE_CUDA) return {begin, begin + bytes};
  std::vector<std::byte> copy(bytes);
  cuda_download(copy, begin);
  return copy;
}

}  // namespace

void DeviceBuffer::Free::operator()(std::byte* memory) const {
  if (device == HEADRACE_DEVICE_CUDA) {
    cuda_free(memory);
  } else {
    std::free(memory);
  }
}

DeviceBuffer::DeviceBuffer(headrace_device device, std::size_t bytes, Guards guards)
    : device_(device),
      bytes_(bytes),
      guard_bytes_(guards == Guards::kBytes ? kGuardBytes : 0),
      memory_(allocate(device, bytes + 2 * guard_bytes_), Free{device}) {
  std::byte* const begin = memory_.get();
  fill(device, begin, guard_bytes_, kGuard);
  fill(device, begin + guard_bytes_, bytes_, std::byte{0xFF});
  fill(device, begin + guard_bytes_ + bytes_, guard_bytes_, kGuard);
}

void DeviceBuffer::upload(std::span<const std::byte> bytes) {
  if (bytes.size() != bytes_) throw std::runtime_error("upload of another size than the buffer's");
  if (device_ == HEADRACE_DEVICE_CUDA) {
    cuda_upload(memory_.get() + guard_bytes_, bytes);
  } else {
    std::ranges::copy(bytes, memory_.get() + guard_bytes_);
  }
}

std::vector<std::byte> DeviceBuffer::download() const {
  return download_from(device_, memory_.get() + guard_bytes_, bytes_);
}

bool DeviceBuffer::guards_intact() const {
  const auto all_guard = [this](const std::byte* begin) {
    return std::ranges::all_of(download_from(device_, begin, guard_bytes_),
                               [](std::byte value) { return value == kGuard; });
  };
  const std::byte* const begin = memory_.get();
  return all_guard(begin) && all_guard(begin + guard_bytes_ + bytes_);
}

}  // namespace headrace::tests
