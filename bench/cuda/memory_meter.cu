#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "bench/cuda/memory_meter.h"
#include "bench/cuda/paged_reader.h"
#include "bench/random.h"

namespace headrace::bench::cuda {
namespace {

constexpr std::size_t kShifts[] = {0, 4352 * 1024, 37 * 1024 * 1024 + 8192};
constexpr std::size_t kMaxShift = 64 << 20;
constexpr int kThreads = 512;

__global__ void __launch_bounds__(kThreads)
    copy(const uint4* from, uint4* to, std::size_t num_vectors) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; i + 3 * step < num_vectors; i += 4 * step) {
    uint4 values[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) values[k] = __ldcs(from + i + k * step);
#pragma unroll
    for (int k = 0; k < 4; ++k) __stcs(to + i + k * step, values[k]);
  }
  for (; i < num_vectors; i += step) __stcs(to + i, __ldcs(from + i));
}

// Stores only for one sum in 2^32, so that the loads are not optimised away.
__global__ void __launch_bounds__(kThreads)
    read(const uint4* from, std::uint32_t* to, std::size_t num_vectors) {
  constexpr int kAhead = 8;
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  std::uint32_t sum = 0;
  for (; i + (kAhead - 1) * step < num_vectors; i += kAhead * step) {
    uint4 values[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) values[k] = __ldcs(from + i + k * step);
#pragma unroll
    for (int k = 0; k < kAhead; ++k) sum += values[k].x ^ values[k].y ^ values[k].z ^ values[k].w;
  }
  for (; i < num_vectors; i += step) {
    const uint4 value = __ldcs(from + i);
    sum += value.x ^ value.y ^ value.z ^ value.w;
  }
  if (sum == 0x9E3779B9u) *to = sum;
}

std::int32_t num_sms() {
  int count = 0;
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0),
        "cudaDeviceGetAttribute");
  return count;
}

}  // namespace

MemoryMeter::MemoryMeter(std::size_t cold_bytes)
    : cold_bytes_(cold_bytes),
      num_sms_(num_sms()),
      from_(kMaxCopyBytes / 2 + kMaxShift),
      to_(kMaxCopyBytes / 2 + kMaxShift) {
  check(cudaMemset(from_.data(), 0x5A, from_.size()), "cudaMemset");
}

double MemoryMeter::time_us(std::size_t bytes, std::size_t num_places,
                            const std::function<void(std::size_t, cudaStream_t)>& call) const {
  constexpr std::int32_t kReplays = 10;
  constexpr std::size_t kMinCalls = 2;
  constexpr std::size_t kUsualCalls = 32;
  constexpr std::size_t kMaxCalls = 1024;
  const std::size_t cold_calls = std::clamp(cold_bytes_ / bytes + 1, kUsualCalls, kMaxCalls);
  const auto num_calls =
      static_cast<std::int32_t>(std::max(std::min(num_places, cold_calls), kMinCalls));
  TimedGraph graph(num_calls, [&](std::int32_t i, cudaStream_t stream) {
    call(static_cast<std::size_t>(i) % num_places, stream);
  });
  return graph.call_us(kReplays);
}

double MemoryMeter::copy_us(std::size_t bytes) const {
  const std::size_t half = std::max<std::size_t>(bytes / 32, 1) * sizeof(uint4);
  const std::size_t num_places = std::max<std::size_t>(kMaxCopyBytes / 2 / half, 1);
  double best_us = 1e300;
  for (const std::size_t shift : kShifts) {
    const auto runtime_copy = [&](std::size_t place, cudaStream_t stream) {
      check(cudaMemcpyAsync(to_.data() + shift + half * place, from_.data() + half * place, half,
                            cudaMemcpyDeviceToDevice, stream),
            "cudaMemcpyAsync");
    };
    const auto kernel_copy = [&](std::size_t place, cudaStream_t stream) {
      const std::size_t num_vectors = half / sizeof(uint4);
      const auto blocks =
          static_cast<unsigned>(std::clamp<std::size_t>(num_vectors / 2048, 1, 1056));
      copy<<<blocks, kThreads, 0, stream>>>(
          reinterpret_cast<const uint4*>(from_.data() + half * place),
          reinterpret_cast<uint4*>(to_.data() + shift + half * place), num_vectors);
      check(cudaGetLastError(), "copy");
    };
    best_us = std::min({best_us, time_us(2 * half, num_places, runtime_copy),
                        time_us(2 * half, num_places, kernel_copy)});
  }
  return best_us;
}

double MemoryMeter::read_us(std::size_t bytes) const {
  const std::size_t num_vectors = std::max<std::size_t>(bytes / sizeof(uint4), 1);
  const std::size_t size = num_vectors * sizeof(uint4);
  const std::size_t num_places = std::max<std::size_t>(kMaxReadBytes / size, 1);
  double best_us = 1e300;
  for (const int blocks_per_sm : {1, 2, 4, 16}) {
    best_us =
        std::min(best_us, time_us(size, num_places, [&](std::size_t place, cudaStream_t stream) {
                   read<<<static_cast<unsigned>(blocks_per_sm * num_sms_), kThreads, 0, stream>>>(
                       reinterpret_cast<const uint4*>(from_.data() + size * place),
                       reinterpret_cast<std::uint32_t*>(to_.data()), num_vectors);
                   check(cudaGetLastError(), "read");
                 }));
  }
  return best_us;
}

double MemoryMeter::paged_read_us(std::size_t bytes, std::uint32_t page_bytes) const {
  std::vector<std::int32_t> ids(kMaxReadBytes / page_bytes);
  std::iota(ids.begin(), ids.end(), 0);
  constexpr std::uint64_t kSeed = 1;
  Random(kSeed).shuffle(std::span(ids));
  const Array<std::int32_t> pages{std::span<const std::int32_t>(ids)};
  const std::vector<std::uint32_t> zeros(2);
  const Array<std::uint32_t> counters{std::span(zeros)};
  const std::size_t num_pages = std::max<std::size_t>(bytes / page_bytes, 1);
  return time_us(num_pages * page_bytes, std::max<std::size_t>(ids.size() / num_pages, 1),
                 [&](std::size_t place, cudaStream_t stream) {
                   read_pages({.pool = from_.data(),
                               .pages = pages.data() + num_pages * place,
                               .num_pages = static_cast<std::uint32_t>(num_pages),
                               .page_bytes = page_bytes,
                               .counters = counters.data()},
                              num_sms_, stream);
                 });
}

}  // namespace headrace::bench::cuda
