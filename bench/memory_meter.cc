#include "bench/memory_meter.h"

#include <algorithm>
#include <array>
#include <barrier>
#include <cstdint>
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
void copy_streaming(std::byte* to, const std::byte* from, std::size_t num_bytes) {
  for (std::size_t at = 0; at < num_bytes; at += kLineBytes) {
    const auto* source = reinterpret_cast<const __m128i*>(from + at);
    auto* target = reinterpret_cast<__m128i*>(to + at);
    for (int i = 0; i < 4; ++i) _mm_stream_si128(target + i, _mm_load_si128(source + i));
  }
  _mm_sfence();
}
#else
constexpr auto copy_streaming = copy_cached;
#endif

// Leaves sums of what it read at `to`, so that the reading is not optimised away.
void read_only(std::byte* to, const std::byte* from, std::size_t num_bytes) {
  constexpr std::size_t kAheadBytes = 1024;
  std::array<std::uint64_t, 8> sums{};
  const auto add_line = [&sums](const std::byte* line) {
    std::array<std::uint64_t, 8> words;
    std::memcpy(words.data(), line, kLineBytes);
    for (std::size_t i = 0; i < words.size(); ++i) sums[i] += words[i];
    __builtin_prefetch(line + kAheadBytes);
  };
  const std::size_t half = num_bytes / 2 / kLineBytes * kLineBytes;
  for (std::size_t at = 0; at < half; at += kLineBytes) {
    add_line(from + at);
    add_line(from + half + at);
  }
  if (2 * half < num_bytes) add_line(from + 2 * half);
  std::memcpy(to, sums.data(), std::min(num_bytes, sizeof sums));
}

}  // namespace

MemoryMeter::MemoryMeter(const Device& device, std::size_t num_bytes)
    : device_(device),
      num_bytes_(std::max(num_bytes / kLineBytes, std::size_t{1}) * kLineBytes),
      from_(device.allocate(num_bytes_)),
      to_(device.allocate(num_bytes_)),
      memcpy_{copy_cached, {}},
      stream_{copy_streaming, {}},
      read_{read_only, {}} {
  // Memory belongs to the node of the thread that first writes it.
  on_threads(device.num_workers(), [&](int thread) {
    std::memset(from_.get() + part_begin(thread), 1, part_begin(thread + 1) - part_begin(thread));
    std::memset(to_.get() + part_begin(thread), 1, part_begin(thread + 1) - part_begin(thread));
  });
}

std::size_t MemoryMeter::part_begin(int thread) const {
  const auto num_threads = static_cast<std::size_t>(device_.num_workers());
  return num_bytes_ / kLineBytes * static_cast<std::size_t>(thread) / num_threads * kLineBytes;
}

double MemoryMeter::move_us(Move move) {
  // All threads start at once and the last one ends it: their creation does not count.
  std::barrier together(device_.num_workers());
  double time_us = 0;
  on_threads(device_.num_workers(), [&](int thread) {
    const auto move_part = [&] {
      move(to_.get() + part_begin(thread), from_.get() + part_begin(thread),
           part_begin(thread + 1) - part_begin(thread));
      together.arrive_and_wait();
    };
    together.arrive_and_wait();
    if (thread == 0) {
      time_us = device_.time_us(move_part);
    } else {
      move_part();
    }
  });
  return time_us;
}

double MemoryMeter::sample_us() {
  double total_us = 0;
  for (Way* way : {&memcpy_, &stream_, &read_}) {
    way->times_us.push_back(move_us(way->move));
    total_us += way->times_us.back();
  }
  return total_us;
}

double MemoryMeter::gbps(const Way& way, int num_passes) const {
  return num_passes * static_cast<double>(num_bytes_) / quantile(way.times_us, 0.5) / 1e3;
}

MemorySpeed MemoryMeter::speed() const {
  return {.copy_gbps = std::max(gbps(memcpy_, 2), gbps(stream_, 2)),
          .memcpy_gbps = gbps(memcpy_, 2),
          .read_gbps = gbps(read_, 1)};
}

void MemoryMeter::forget() {
  for (Way* way : {&memcpy_, &stream_, &read_}) way->times_us.clear();
}

}  // namespace headrace::bench
