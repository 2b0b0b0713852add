// Plain copies, the measure of everything else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "bench/cuda/device.h"

namespace headrace::bench::cuda {

// The time of one call, us: a graph of `calls` calls, replayed; each sample is a replay over its
// calls.
std::vector<double> time_calls_us(std::int32_t calls, std::int32_t replays,
                                  const std::function<void(std::int32_t, cudaStream_t)>& call);

// Copies within two large buffers: from another place each time, so that L2 is cold.
class Copier {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{8} << 30;

  Copier();

  // us of a copy that moves `bytes` (half of them read, half written; at most kMaxBytes): the best
  // of cudaMemcpyAsync and a plain kernel, each with several distances between source and
  // destination. Some distances make reads and writes collide in the same memory banks and cost a
  // third of the rate.
  double copy_us(std::size_t bytes) const;

 private:
  Array<std::byte> from_;
  Array<std::byte> to_;
};

}  // namespace headrace::bench::cuda
