#include "bench/device.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdlib>
#include <new>
#include <stdexcept>

#include "bench/machine.h"

namespace headrace::bench {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

}  // namespace

void FreeMemory::operator()(std::byte* memory) const { std::free(memory); }

Device::Device(headrace_device kind, int num_workers)
    : context_(kind, num_workers), info_(context_.info()) {}

// The system hands out more than it has and kills whoever touches it, so ask first.
void Device::require_memory(std::size_t num_bytes) const {
  const std::size_t available = available_memory_bytes();
  if (num_bytes <= available) return;
  throw std::runtime_error(fmt::format("needs {} MiB of memory, {} MiB are available",
                                       num_bytes >> 20, available >> 20));
}

Memory Device::allocate(std::size_t num_bytes) const {
  require_memory(num_bytes);
  const std::size_t rounded = (num_bytes / kHugePageBytes + 1) * kHugePageBytes;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kHugePageBytes, rounded));
  if (memory == nullptr) throw std::bad_alloc();
  madvise(memory, rounded, MADV_HUGEPAGE);
  return Memory(memory);
}

}  // namespace headrace::bench
