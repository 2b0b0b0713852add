// The yardsticks: how fast this machine copies and reads memory that is in no cache.
#pragma once

#include <cstddef>
#include <vector>

#include "bench/device.h"

namespace headrace::bench {

// Bytes read + bytes written over the median time.
struct MemorySpeed {
  double copy_gbps;  // the faster of memcpy and a copy by non-temporal stores
  double memcpy_gbps;
  double read_gbps;  // reading alone, two streams per thread as of K and V
};

// Moves a large buffer with as many threads as the device has workers.
class MemoryMeter {
 public:
  // Each of its two buffers has num_bytes.
  MemoryMeter(const Device& device, std::size_t num_bytes);

  // Takes each way once. Returns the time it took.
  double sample_us();

  // Of the samples since forget().
  MemorySpeed speed() const;
  void forget();

 private:
  using Move = void (*)(std::byte* to, const std::byte* from, std::size_t num_bytes);
  struct Way {
    Move move;
    std::vector<double> times_us;
  };

  // Thread i moves [part_begin(i), part_begin(i + 1)).
  std::size_t part_begin(int thread) const;
  double move_us(Move move);
  double gbps(const Way& way, int num_passes) const;

  const Device& device_;
  std::size_t num_bytes_;
  Memory from_;
  Memory to_;
  Way memcpy_;
  Way stream_;
  Way read_;
};

}  // namespace headrace::bench
