// Plain copies and reads, the measure of everything else.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bench/cuda/device.h"
#include "bench/cuda/graph.h"

namespace headrace::bench::cuda {

// Moves memory within two large buffers: from another place each time, so that L2 is cold.
class MemoryMeter {
 public:
  // Of a copy and of a read.
  static constexpr std::size_t kMaxCopyBytes = std::size_t{8} << 30;
  static constexpr std::size_t kMaxReadBytes = kMaxCopyBytes / 2;

  // Between two visits of a place at least cold_bytes are moved, or a thousand times as much as in
  // one.
  explicit MemoryMeter(std::size_t cold_bytes);

  // us of a copy that moves `bytes` (half of them read, half written): the best of cudaMemcpyAsync
  // and a plain kernel, each with several distances between source and destination. Some distances
  // make reads and writes collide in the same memory banks and cost a third of the rate.
  double copy_us(std::size_t bytes) const;

  // us of a kernel that loads `bytes` in order: the best of several grids.
  double read_us(std::size_t bytes) const;

  // us of a kernel whose blocks, one per SM, bring pages in random order to shared memory by bulk
  // copies and do nothing else: what attention over a paged cache can reach. page_bytes divides
  // 4096.
  double paged_read_us(std::size_t bytes, std::uint32_t page_bytes) const;

 private:
  // Best median time of one call; call(place, stream) works on one of num_places.
  double time_us(std::size_t bytes, std::size_t num_places,
                 const std::function<void(std::size_t, cudaStream_t)>& call) const;

  std::size_t cold_bytes_;
  std::int32_t num_sms_;
  Array<std::byte> from_;
  Array<std::byte> to_;
};

}  // namespace headrace::bench::cuda
