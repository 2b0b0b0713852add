// The seam between the benchmark and a device: where memory lives and how time is taken. The CPU's
// memory is the host's, and a run is over when the call returns.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "headrace/headrace.hpp"

namespace headrace::bench {

struct FreeMemory {
  void operator()(std::byte* memory) const;
};
using Memory = std::unique_ptr<std::byte[], FreeMemory>;

class Device {
 public:
  Device(headrace_device kind, int num_workers);

  const Context& context() const { return context_; }
  int num_workers() const { return info_.num_workers; }
  std::string description() const { return info_.description; }

  // Throws std::runtime_error with the bytes needed and available if these are too many.
  void require_memory(std::size_t num_bytes) const;

  // Uninitialised, aligned to a huge page and made of huge pages where the system has them, as an
  // engine's pools are. Throws as require_memory().
  Memory allocate(std::size_t num_bytes) const;

  // How long `work` takes on the device.
  template <typename Work>
  double time_us(Work&& work) const {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
        .count();
  }

 private:
  Context context_;
  headrace_context_info info_;
};

}  // namespace headrace::bench
