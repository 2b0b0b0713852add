// The one place that knows where the buffers of a test live. A device kind needs memory of an exact
// size and copies to and from it; everything else in tests/ is the same for all kinds.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "headrace/headrace.h"

namespace headrace::tests {

enum class Guards {
  kBytes,  // a zone of known bytes on either side, to be looked at afterwards
  kNone,   // an allocation of exactly the bytes asked for: a memory checker sees the rest
};

class DeviceBuffer {
 public:
  // Aligned to 128 bytes and filled with 0xFF. Throws std::bad_alloc or std::runtime_error.
  DeviceBuffer(headrace_device device, std::size_t bytes, Guards guards);

  void* data() const { return memory_.get() + guard_bytes_; }
  std::size_t size() const { return bytes_; }

  void upload(std::span<const std::byte> bytes);
  std::vector<std::byte> download() const;
  bool guards_intact() const;

 private:
  struct Free {
    headrace_device device;
    void operator()(std::byte* memory) const;
  };

  headrace_device device_;
  std::size_t bytes_;
  std::size_t guard_bytes_;
  std::unique_ptr<std::byte, Free> memory_;  // guard zone, bytes_, guard zone
};

}  // namespace headrace::tests
