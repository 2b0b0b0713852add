#include "tests/support/device_buffer.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <stdexcept>

namespace headrace::tests {
namespace {

constexpr std::size_t kAlignment = 128;
constexpr std::size_t kGuardBytes = 1024;  // a multiple of the alignment
constexpr std::byte kGuard{0xA5};

std::byte* allocate(std::size_t bytes) {
  void* memory = nullptr;
  if (posix_memalign(&memory, kAlignment, bytes) != 0) throw std::bad_alloc();
  return static_cast<std::byte*>(memory);
}

}  // namespace

void DeviceBuffer::Free::operator()(std::byte* memory) const { std::free(memory); }

DeviceBuffer::DeviceBuffer(headrace_device device, std::size_t bytes, Guards guards)
    : bytes_(bytes), guard_bytes_(guards == Guards::kBytes ? kGuardBytes : 0) {
  if (device != HEADRACE_DEVICE_CPU) throw std::runtime_error("tests have CPU buffers only");
  memory_.reset(allocate(bytes + 2 * guard_bytes_));
  std::byte* const begin = memory_.get();
  std::fill_n(begin, guard_bytes_, kGuard);
  std::fill_n(begin + guard_bytes_, bytes_, std::byte{0xFF});
  std::fill_n(begin + guard_bytes_ + bytes_, guard_bytes_, kGuard);
}

void DeviceBuffer::upload(std::span<const std::byte> bytes) {
  if (bytes.size() != bytes_) throw std::runtime_error("upload of another size than the buffer's");
  std::ranges::copy(bytes, memory_.get() + guard_bytes_);
}

std::vector<std::byte> DeviceBuffer::download() const {
  const std::byte* const begin = memory_.get() + guard_bytes_;
  return {begin, begin + bytes_};
}

bool DeviceBuffer::guards_intact() const {
  const auto is_guard = [](std::byte value) { return value == kGuard; };
  const std::byte* const begin = memory_.get();
  const std::byte* const tail = begin + guard_bytes_ + bytes_;
  return std::all_of(begin, begin + guard_bytes_, is_guard) &&
         std::all_of(tail, tail + guard_bytes_, is_guard);
}

}  // namespace headrace::tests
