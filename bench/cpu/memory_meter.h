// The yardsticks: how fast this machine copies and reads memory that is in no cache.
#pragma once

#include <cstddef>
#include <vector>

#include "bench/backend.h"

namespace headrace::bench::cpu {

// Moves parts of two large buffers with several threads.
class MemoryMeter {
 public:
  MemoryMeter(const Backend& backend, int num_threads, std::size_t buffer_bytes);

  // From now on a sample copies from one buffer to the other, so that num_bytes are read or
  // written, and reads num_bytes; or as much as the buffers allow. Earlier samples are forgotten.
  void start(std::size_t num_bytes);

  // Takes each way once, from another place than before. Returns the time it took.
  double sample_us();

  // Bytes read + bytes written over the time at this quantile of the samples since start().
  double copy_gbps(double quantile) const;  // the faster of memcpy and non-temporal stores
  double read_gbps(double quantile) const;  // two streams per thread as of K and V

 private:
  using Move = void (*)(std::byte* to, const std::byte* from, std::size_t num_bytes);
  struct Way {
    Move move;
    std::size_t num_bytes;
    std::vector<double> times_us;
  };

  double move_us(Move move, std::size_t num_bytes, std::size_t offset) const;

  int num_threads_;
  std::size_t buffer_bytes_;
  std::size_t num_samples_ = 0;
  Memory from_;
  Memory to_;
  Way memcpy_;
  Way stream_;
  Way read_;
};

}  // namespace headrace::bench::cpu
