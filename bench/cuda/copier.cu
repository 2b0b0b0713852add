#include <algorithm>

#include "bench/cuda/copier.h"
#include "bench/statistics.h"

namespace headrace::bench::cuda {
namespace {

constexpr std::size_t kShifts[] = {0, 4352 * 1024, 37 * 1024 * 1024 + 8192};
constexpr std::size_t kMaxShift = 64 << 20;

__global__ void __launch_bounds__(512) copy(const uint4* from, uint4* to, std::size_t vectors) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; i + 3 * step < vectors; i += 4 * step) {
    uint4 values[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) values[k] = __ldcs(from + i + k * step);
#pragma unroll
    for (int k = 0; k < 4; ++k) __stcs(to + i + k * step, values[k]);
  }
  for (; i < vectors; i += step) __stcs(to + i, __ldcs(from + i));
}

}  // namespace

std::vector<double> time_calls_us(std::int32_t calls, std::int32_t replays,
                                  const std::function<void(std::int32_t, cudaStream_t)>& call) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaEvent_t begin;
  cudaEvent_t end;
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
  for (std::int32_t i = 0; i < calls; ++i) call(i, stream);
  check(cudaStreamEndCapture(stream, &graph), "capture");
  check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  constexpr std::int32_t kWarmUps = 3;
  std::vector<double> times_us;
  for (std::int32_t i = 0; i < kWarmUps + replays; ++i) {
    check(cudaEventRecord(begin, stream), "cudaEventRecord");
    check(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
    check(cudaEventRecord(end, stream), "cudaEventRecord");
    check(cudaEventSynchronize(end), "run");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    if (i >= kWarmUps) times_us.push_back(1e3 * ms / calls);
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaEventDestroy(end);
  cudaEventDestroy(begin);
  cudaStreamDestroy(stream);
  return times_us;
}

Copier::Copier() : from_(kMaxBytes / 2 + kMaxShift), to_(kMaxBytes / 2 + kMaxShift) {
  check(cudaMemset(from_.data(), 0x5A, from_.size()), "cudaMemset");
}

double Copier::copy_us(std::size_t bytes) const {
  const std::size_t half = std::max<std::size_t>(bytes / 32, 1) * 16;
  const std::size_t places = std::max<std::size_t>(kMaxBytes / 2 / half, 1);
  const auto calls = static_cast<std::int32_t>(std::clamp<std::size_t>(places, 2, 32));
  constexpr std::int32_t kReplays = 10;
  double best_us = 1e300;
  for (const std::size_t shift : kShifts) {
    const auto source = [&](std::int32_t i) {
      return from_.data() + half * (static_cast<std::size_t>(i) % places);
    };
    const auto destination = [&](std::int32_t i) {
      return to_.data() + shift + half * (static_cast<std::size_t>(i) % places);
    };
    const auto runtime_copy = [&](std::int32_t i, cudaStream_t stream) {
      check(cudaMemcpyAsync(destination(i), source(i), half, cudaMemcpyDeviceToDevice, stream),
            "cudaMemcpyAsync");
    };
    const auto kernel_copy = [&](std::int32_t i, cudaStream_t stream) {
      const std::size_t vectors = half / sizeof(uint4);
      const auto blocks = static_cast<unsigned>(std::clamp<std::size_t>(vectors / 2048, 1, 1056));
      copy<<<blocks, 512, 0, stream>>>(reinterpret_cast<const uint4*>(source(i)),
                                       reinterpret_cast<uint4*>(destination(i)), vectors);
      check(cudaGetLastError(), "copy");
    };
    best_us = std::min({best_us, quantile(time_calls_us(calls, kReplays, runtime_copy), 0.5),
                        quantile(time_calls_us(calls, kReplays, kernel_copy), 0.5)});
  }
  return best_us;
}

}  // namespace headrace::bench::cuda
