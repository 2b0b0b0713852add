// A GPU, number 0 of the process.
#include "bench/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "bench/cuda/device.h"
#include "bench/cuda/graph.h"
#include "bench/cuda/memory_meter.h"
#include "bench/cuda/reference.h"
#include "bench/problem.h"

namespace headrace::bench {
namespace {

// The largest copy is not always the fastest.
constexpr std::size_t kPeakCopyBytes[] = {std::size_t{256} << 20, std::size_t{512} << 20,
                                          std::size_t{1} << 30, std::size_t{4} << 30};
// Graphs that take longer need no more than the fewest runs and replays.
constexpr double kLongReplayUs = 5000;
// Plans, outputs and the reference's scores need memory beside K and V.
constexpr std::size_t kOtherBytes = std::size_t{1} << 30;

int attribute(cudaDeviceAttr name) {
  int value = 0;
  cuda::check(cudaDeviceGetAttribute(&value, name, 0), "cudaDeviceGetAttribute");
  return value;
}

// The first word of the driver's own version line that looks like 580.159.04.
std::string driver_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    if (word.find('.') != std::string::npos &&
        word.find_first_not_of("0123456789.") == std::string::npos) {
      return word;
    }
  }
  return "unknown";
}

std::string cuda_version(cudaError_t (*get)(int*), const char* name) {
  int version = 0;
  cuda::check(get(&version), name);
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::size_t l2_bytes() { return static_cast<std::size_t>(attribute(cudaDevAttrL2CacheSize)); }

class CudaBackend final : public Backend {
 public:
  CudaBackend(Context context, std::size_t cold_bytes)
      : Backend(std::move(context), cold_bytes), meter_(cold_bytes) {}

  nlohmann::ordered_json machine() const override {
    cudaDeviceProp properties;
    cuda::check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
    return {{"device", properties.name},
            {"executor", context().info().description},
            {"workers", context().info().num_workers},
            {"driver", driver_version()},
            {"driver_cuda", cuda_version(cudaDriverGetVersion, "cudaDriverGetVersion")},
            {"runtime_cuda", cuda_version(cudaRuntimeGetVersion, "cudaRuntimeGetVersion")},
            {"sm_clock_mhz", attribute(cudaDevAttrClockRate) / 1000},
            {"memory_clock_mhz", attribute(cudaDevAttrMemoryClockRate) / 1000},
            {"sms", properties.multiProcessorCount},
            {"l2_bytes", properties.l2CacheSize},
            {"memory_bytes", properties.totalGlobalMem}};
  }
  std::size_t available_bytes() const override {
    std::size_t free = 0;
    std::size_t total = 0;
    cuda::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return free - std::min(free, kOtherBytes);
  }
  double default_min_time_s() const override { return 0.2; }

  Memory allocate(std::size_t num_bytes) const override {
    void* memory = nullptr;
    if (cudaMalloc(&memory, std::max(num_bytes, std::size_t{1})) != cudaSuccess) {
      cudaGetLastError();  // so that no later call reports it again
      throw std::runtime_error(fmt::format("needs {} MiB of GPU memory, {} MiB are available",
                                           num_bytes >> 20, available_bytes() >> 20));
    }
    return Memory(static_cast<std::byte*>(memory), {[](void* freed) { cudaFree(freed); }});
  }
  void upload(void* to, const void* from, std::size_t num_bytes) const override {
    cuda::check(cudaMemcpy(to, from, num_bytes, cudaMemcpyHostToDevice), "upload");
  }
  void download(void* to, const void* from, std::size_t num_bytes) const override {
    cuda::check(cudaMemcpy(to, from, num_bytes, cudaMemcpyDeviceToHost), "download");
  }
  void fill_normal(void* data, std::int64_t begin, std::int64_t end, headrace_dtype dtype,
                   std::uint64_t seed) const override {
    cuda::fill_normal(data, begin, end, dtype, seed);
  }

  double peak_copy_gbps() override {
    double peak_gbps = 0;
    for (const std::size_t bytes : kPeakCopyBytes) {
      peak_gbps = std::max(peak_gbps, copy_gbps(bytes));
    }
    return peak_gbps;
  }

  Timing time(Problem& problem, const StopRule& rule) override {
    constexpr std::int32_t kShortReplays = 100;
    cuda::TimedGraph graph(num_graph_runs(problem), [&](std::int32_t i, cudaStream_t stream) {
      problem.run(i % problem.num_sets(), stream);
    });
    StopRule replays = rule;
    if (graph.replay_us() < kLongReplayUs) {
      replays.min_repetitions = std::max(rule.min_repetitions, kShortReplays);
    }
    const std::vector<double> times_us = repeat_us(replays, [&] { return graph.replay_us(); });
    const std::size_t copied =
        std::clamp(problem.config().kv_bytes(), std::size_t{32}, meter_.kMaxCopyBytes);
    return summarise(times_us, graph.num_calls(), copy_gbps(copied));
  }

  // The last of the replays that warm the graph up is the one whose records stay.
  void record(Problem& problem, std::span<headrace_timeline_record* const> timelines) override {
    const auto num_recorded = static_cast<std::int32_t>(timelines.size());
    const std::int32_t num_before = std::max(num_graph_runs(problem) - num_recorded, 0);
    const cuda::TimedGraph graph(num_before + num_recorded, [&](std::int32_t i,
                                                                cudaStream_t stream) {
      problem.run(i % problem.num_sets(), stream,
                  i < num_before ? nullptr : timelines[static_cast<std::size_t>(i - num_before)]);
    });
  }

  std::vector<MemoryTime> memory_times(std::size_t num_bytes) override {
    if (num_bytes > meter_.kMaxReadBytes) {
      throw std::runtime_error(fmt::format("reads at most {} MiB, {} were asked for",
                                           meter_.kMaxReadBytes >> 20, num_bytes >> 20));
    }
    return {{"copy", meter_.copy_us(num_bytes)},
            {"read", meter_.read_us(num_bytes)},
            {"paged_read_4k", meter_.paged_read_us(num_bytes, 4096)},
            {"paged_read_2k", meter_.paged_read_us(num_bytes, 2048)}};
  }

  std::vector<double> reference(const headrace_attention_desc& desc, const headrace_run_args& args,
                                std::span<const RequestHead> rows) const override {
    return cuda::reference(desc, args, rows);
  }
  std::int64_t reference_tokens() const override { return 1 << 24; }

 private:
  // So many runs, or so long, that launching a graph of them does not count; each set as often.
  static std::int32_t num_graph_runs(const Problem& problem) {
    constexpr double kMinRuns = 8;
    constexpr double kGuessedGbps = 4000;
    const double guessed_us =
        5 + static_cast<double>(problem.config().kv_bytes()) / kGuessedGbps / 1e3;
    const auto num_sets = static_cast<double>(problem.num_sets());
    const double rounds = std::ceil(std::min(kMinRuns, kLongReplayUs / guessed_us) / num_sets);
    return static_cast<std::int32_t>(num_sets * std::max(rounds, 1.0));
  }

  // Many rows have as many bytes as others.
  double copy_gbps(std::size_t bytes) {
    const auto [measured, is_new] = copies_gbps_.try_emplace(bytes);
    if (is_new) measured->second = static_cast<double>(bytes) / meter_.copy_us(bytes) / 1e3;
    return measured->second;
  }

  cuda::MemoryMeter meter_;
  std::map<std::size_t, double> copies_gbps_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(Context context, std::size_t working_set_bytes) {
  const std::size_t cold_bytes = working_set_bytes > 0 ? working_set_bytes : 4 * l2_bytes();
  return std::make_unique<CudaBackend>(std::move(context), cold_bytes);
}

}  // namespace headrace::bench
