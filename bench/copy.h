// The yardstick: how fast this machine copies memory that is in no cache.
#pragma once

#include <cstddef>
#include <vector>

#include "bench/device.h"

namespace headrace::bench {

// Copies a large buffer with as many threads as the device has workers, by memcpy and by
// non-temporal stores (where the machine has them) in turn; the faster method counts.
class CopyMeter {
 public:
  // Each of the two buffers has num_bytes.
  CopyMeter(const Device& device, std::size_t num_bytes);

  // One copy by each method. Returns the time it took.
  double sample_us();

  // Bytes read + bytes written over the median time of the faster method, since forget().
  double gbps() const;
  void forget();

 private:
  using Method = void (*)(std::byte* to, const std::byte* from, std::size_t num_bytes);
  struct Samples {
    Method method;
    std::vector<double> times_us;
  };
  // Thread i copies [part_begin(i), part_begin(i + 1)).
  std::size_t part_begin(int thread) const;
  double copy_us(Method method);

  const Device& device_;
  std::size_t num_bytes_;
  Memory from_;
  Memory to_;
  std::vector<Samples> samples_;  // one per method
};

}  // namespace headrace::bench
