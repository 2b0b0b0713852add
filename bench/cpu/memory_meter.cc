#include "bench/cpu/memory_meter.h"

#include <algorithm>
#include <array>
#include <barrier>
#include <cstdint>
#include <cstring>

#include "bench/cpu/clock.h"
#include "bench/cpu/threads.h"
#include "bench/statistics.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace headrace::bench::cpu {
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

// Where thread `thread` begins; it ends where the next one does.
std::size_t part_begin(std::size_t num_bytes, int thread, int num_threads) {
  return num_bytes / kLineBytes * static_cast<std::size_t>(thread) /
         static_cast<std::size_t>(num_threads) * kLineBytes;
}

std::size_t whole_lines(std::size_t num_bytes) {
  return std::max(num_bytes / kLineBytes, std::size_t{1}) * kLineBytes;
}

}  // namespace

MemoryMeter::MemoryMeter(const Backend& backend, int num_threads, std::size_t buffer_bytes)
    : num_threads_(num_threads),
      buffer_bytes_(whole_lines(buffer_bytes)),
      from_(backend.allocate(buffer_bytes_)),
      to_(backend.allocate(buffer_bytes_)),
      memcpy_{copy_cached, 0, {}},
      stream_{copy_streaming, 0, {}},
      read_{read_only, 0, {}} {
  // Memory belongs to the node of the thread that first writes it.
  on_threads(num_threads_, [&](int thread) {
    const std::size_t begin = part_begin(buffer_bytes_, thread, num_threads_);
    const std::size_t end = part_begin(buffer_bytes_, thread + 1, num_threads_);
    std::memset(from_.get() + begin, 1, end - begin);
    std::memset(to_.get() + begin, 1, end - begin);
  });
}

void MemoryMeter::start(std::size_t num_bytes) {
  for (Way* way : {&memcpy_, &stream_, &read_}) {
    way->num_bytes =
        std::min(whole_lines(way == &read_ ? num_bytes : num_bytes / 2), buffer_bytes_);
    way->times_us.clear();
  }
}

double MemoryMeter::move_us(Move move, std::size_t num_bytes, std::size_t offset) const {
  // All threads start at once and the last one ends it: their creation does not count.
  std::barrier together(num_threads_);
  double time_us = 0;
  on_threads(num_threads_, [&](int thread) {
    const std::size_t begin = part_begin(num_bytes, thread, num_threads_);
    const std::size_t end = part_begin(num_bytes, thread + 1, num_threads_);
    const auto move_part = [&] {
      move(to_.get() + offset + begin, from_.get() + offset + begin, end - begin);
      together.arrive_and_wait();
    };
    together.arrive_and_wait();
    if (thread == 0) {
      time_us = elapsed_us(move_part);
    } else {
      move_part();
    }
  });
  return time_us;
}

double MemoryMeter::sample_us() {
  double total_us = 0;
  for (Way* way : {&memcpy_, &stream_, &read_}) {
    // Every way takes the next place, so that it does not find what the way before it has read.
    const std::size_t num_places = buffer_bytes_ / way->num_bytes;
    const std::size_t offset = num_samples_++ % num_places * way->num_bytes;
    way->times_us.push_back(move_us(way->move, way->num_bytes, offset));
    total_us += way->times_us.back();
  }
  return total_us;
}

double MemoryMeter::copy_gbps(double quantile) const {
  const double us = std::min(bench::quantile(memcpy_.times_us, quantile),
                             bench::quantile(stream_.times_us, quantile));
  return 2 * static_cast<double>(memcpy_.num_bytes) / us / 1e3;
}

double MemoryMeter::read_gbps(double quantile) const {
  return static_cast<double>(read_.num_bytes) / bench::quantile(read_.times_us, quantile) / 1e3;
}

}  // namespace headrace::bench::cpu
