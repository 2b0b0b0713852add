// cuda-bench: the CUDA executor on cold caches, in graphs of many calls, against copies measured in
// the same run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/commit.h"
#include "bench/cuda/copier.h"
#include "bench/cuda/problem.h"
#include "bench/names.h"
#include "bench/profiles.h"
#include "bench/statistics.h"

namespace {

using headrace::bench::Profile;
using headrace::bench::quantile;
namespace cuda = headrace::bench::cuda;

// The largest copy is not always the fastest.
constexpr std::size_t kPeakCopyBytes[] = {std::size_t{256} << 20, std::size_t{512} << 20,
                                          std::size_t{1} << 30, std::size_t{4} << 30};

struct Options {
  // Batch and profile of each row; the batch is ignored where the profile fixes it.
  std::vector<std::pair<std::int32_t, std::string>> batches = {{128, "uniform:4096"},
                                                               {32, "uniform:8192"},
                                                               {9, "uniform:8192"},
                                                               {17, "uniform:8192"},
                                                               {18, "uniform:8192"},
                                                               {20, "uniform:8192"},
                                                               {34, "uniform:8192"},
                                                               {256, "uniform:1024"},
                                                               {256, "uniform:4096"},
                                                               {32, "lognormal:2048,1.2"},
                                                               {128, "lognormal:2048,1.2"},
                                                               {256, "lognormal:2048,1.8"},
                                                               {32, "one-long:131072,31,4096"},
                                                               {128, "one-long:131072,127,2048"},
                                                               {1, "uniform:131072"},
                                                               {1, "uniform:524288"}};
  std::vector<std::int32_t> kv_heads = {8};
  std::vector<std::int32_t> page_sizes = {16};
  std::vector<std::string> dtypes = {"bf16", "fp8"};
  std::vector<std::string> layouts = {"nhd"};
  std::int32_t qo_heads = 32;
  std::uint64_t seed = 1;
  std::int32_t replays = 40;
  std::string json;
};

nlohmann::json machine() {
  cudaDeviceProp properties;
  int driver = 0;
  int runtime = 0;
  cuda::check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  cuda::check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  cuda::check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  return {{"device", properties.name},
          {"sms", properties.multiProcessorCount},
          {"l2_bytes", properties.l2CacheSize},
          {"driver_cuda", driver},
          {"runtime_cuda", runtime}};
}

void run(const Options& options) {
  const headrace::Context context(HEADRACE_DEVICE_CUDA);
  const cuda::Copier copier;
  double peak_copy_gbps = 0;
  for (const std::size_t bytes : kPeakCopyBytes) {
    peak_copy_gbps =
        std::max(peak_copy_gbps, static_cast<double>(bytes) / copier.copy_us(bytes) / 1e3);
  }
  fmt::print("{}; peak copy {:.0f} GB/s\n", context.info().description, peak_copy_gbps);
  fmt::print("{:>5} {:<26} {:>2} {:>4} {:>5} {:>6} {:>8} {:>8} {:>7} {:>6} {:>6} {:>8} {:>8}\n",
             "batch", "profile", "kv", "page", "cache", "layout", "MB", "us", "+-us", "% peak",
             "% copy", "rms err%", "max err%");
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& dtype : options.dtypes) {
    for (const auto& layout : options.layouts) {
      for (const std::int32_t kv_heads : options.kv_heads) {
        for (const std::int32_t page_size : options.page_sizes) {
          for (const auto& [batch, text] : options.batches) {
            cuda::ProblemConfig config{
                Profile::parse(text).lengths(batch, options.seed),
                headrace::attention_desc(options.qo_heads, kv_heads, 128, 0.08838834764831845f),
                options.seed};
            config.desc.page_size = page_size;
            config.desc.kv_dtype = headrace::bench::dtypes().at(dtype);
            config.desc.layout = headrace::bench::layouts().at(layout);
            cuda::Problem problem(context, config);
            const cuda::ErrorPct error = problem.check();
            const std::int32_t sets = problem.num_sets();
            const std::int32_t calls = sets * std::max(1, 8 / sets);
            const std::vector<double> times = cuda::time_calls_us(
                calls, options.replays,
                [&](std::int32_t i, cudaStream_t stream) { problem.run(i % sets, stream); });
            const double us = quantile(times, 0.5);
            const double spread = (quantile(times, 0.9) - quantile(times, 0.1)) / 2;
            const auto bytes = static_cast<double>(problem.kv_bytes());
            const double gbps = bytes / us / 1e3;
            const std::size_t copied = std::min(problem.kv_bytes(), cuda::Copier::kMaxBytes);
            const double copy_gbps = static_cast<double>(copied) / copier.copy_us(copied) / 1e3;
            const double pct_peak = 100 * gbps / peak_copy_gbps;
            const double pct_matched = 100 * gbps / copy_gbps;
            fmt::print(
                "{:>5} {:<26} {:>2} {:>4} {:>5} {:>6} {:>8.1f} {:>8.2f} {:>7.2f} {:>6.1f} {:>6.1f} "
                "{:>8.3f} {:>8.3f}\n",
                config.seq_lens.size(), text, kv_heads, page_size, dtype, layout, bytes / 1e6, us,
                spread, pct_peak, pct_matched, error.rms, error.max);
            std::fflush(stdout);
            rows.push_back({{"batch", config.seq_lens.size()},
                            {"profile", text},
                            {"kv_heads", kv_heads},
                            {"page_size", page_size},
                            {"dtype", dtype},
                            {"layout", layout},
                            {"bytes", problem.kv_bytes()},
                            {"us", us},
                            {"spread_us", spread},
                            {"gbps", gbps},
                            {"pct_peak_copy", pct_peak},
                            {"pct_matched_copy", pct_matched},
                            {"rms_error_pct", error.rms},
                            {"max_error_pct", error.max},
                            {"dependent_launch", false}});
          }
        }
      }
    }
  }
  if (!options.json.empty()) {
    std::ofstream(options.json) << nlohmann::json{{"machine", machine()},
                                                  {"commit", HEADRACE_BENCH_COMMIT},
                                                  {"seed", options.seed},
                                                  {"peak_copy_gbps", peak_copy_gbps},
                                                  {"rows", rows}}
                                       .dump(1)
                                << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Times headrace's CUDA executor: graphs of many calls on rotating KV sets (cold L2), against "
      "the peak copy rate and a copy of as many bytes measured in the same run.");
  app.add_option("--batch-profile", options.batches,
                 "rows: batch and profile, e.g. --batch-profile 128 uniform:4096");
  app.add_option("--kv-heads", options.kv_heads, "KV heads")->capture_default_str();
  app.add_option("--qo-heads", options.qo_heads, "query heads")->capture_default_str();
  app.add_option("--page-size", options.page_sizes, "tokens per page")->capture_default_str();
  app.add_option("--cache", options.dtypes, "bf16, fp8")
      ->check(CLI::IsMember({"bf16", "fp8"}))
      ->capture_default_str();
  app.add_option("--layout", options.layouts, "nhd, hnd")
      ->check(CLI::IsMember({"nhd", "hnd"}))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of lengths, pages and data")->capture_default_str();
  app.add_option("--replays", options.replays, "graph replays per row")->capture_default_str();
  app.add_option("--json", options.json, "write the rows to this file");
  CLI11_PARSE(app, argc, argv);
  try {
    run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "cuda-bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
