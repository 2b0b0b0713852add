#include "bench/copy.h"

#include <algorithm>
#include <barrier>
#include <cstring>

#include "bench/statistics.h"
#include "bench/threads.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace headrace::bench {
namespace {

// A thread's part is a multiple of a cache line, so that stores are whole lines.
constexpr std::size_t kLineBytes = 64;

void copy_cached(std::byte* to, const std::byte* from, std::size_t num_bytes) {
  std::memcpy(to, from, num_bytes);
}

#if defined(__SSE2__)
// Stores that bypass the cache need not read the line they overwrite.
void copy_non_temporal(std::byte* to, const std::byte* from, std::size_t num_bytes) {
  for (std::size_t at = 0; at < num_bytes; at += kLineBytes) {
    const auto* source = reinterpret_cast<const __m128i*>(from + at);
    auto* target = reinterpret_cast<__m128i*>(to + at);
    for (int i = 0; i < 4; ++i) _mm_stream_si128(target + i, _mm_load_si128(source + i));
  }
  _mm_sfence();
}
#endif

}  // namespace

CopyMeter::CopyMeter(const Device& device, std::size_t num_bytes)
    : device_(device),
      num_bytes_(std::max(num_bytes / kLineBytes, std::size_t{1}) * kLineBytes),
      from_(device.allocate(num_bytes_)),
      to_(device.allocate(num_bytes_)) {
  samples_.push_back({copy_cached, {}});
#if defined(__SSE2__)
  samples_.push_back({copy_non_temporal, {}});
#endif
  // Memory belongs to the node of the thread that first writes it.
  on_threads(device.num_workers(), [&](int thread) {
    std::memset(from_.get() + part_begin(thread), 1, part_begin(thread + 1) - part_begin(thread));
    std::memset(to_.get() + part_begin(thread), 1, part_begin(thread + 1) - part_begin(thread));
  });
}

std::size_t CopyMeter::part_begin(int thread) const {
  const auto num_threads = static_cast<std::size_t>(device_.num_workers());
  return num_bytes_ / kLineBytes * static_cast<std::size_t>(thread) / num_threads * kLineBytes;
}

double CopyMeter::copy_us(Method method) {
  // All threads start at once and the last one ends it: their creation does not count.
  std::barrier together(device_.num_workers());
  double time_us = 0;
  on_threads(device_.num_workers(), [&](int thread) {
    const auto copy_part = [&] {
      method(to_.get() + part_begin(thread), from_.get() + part_begin(thread),
             part_begin(thread + 1) - part_begin(thread));
      together.arrive_and_wait();
    };
    together.arrive_and_wait();
    if (thread == 0) {
      time_us = device_.time_us(copy_part);
    } else {
      copy_part();
    }
  });
  return time_us;
}

double CopyMeter::sample_us() {
  double total_us = 0;
  for (Samples& samples : samples_) {
    samples.times_us.push_back(copy_us(samples.method));
    total_us += samples.times_us.back();
  }
  return total_us;
}

double CopyMeter::gbps() const {
  double best = 0;
  for (const Samples& samples : samples_) {
    best =
        std::max(best, 2 * static_cast<double>(num_bytes_) / quantile(samples.times_us, 0.5) / 1e3);
  }
  return best;
}

void CopyMeter::forget() {
  for (Samples& samples : samples_) samples.times_us.clear();
}

}  // namespace headrace::bench
