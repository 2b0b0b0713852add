// How long the planner takes: median over repetitions that rotate over differently drawn batches,
// so that no branch predictor knows the lengths by heart.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/profiles.h"
#include "bench/statistics.h"
#include "host/planner.h"

namespace headrace::bench {
namespace {

constexpr std::uint64_t kBatches = 16;  // differently drawn ones

struct Options {
  std::uint32_t num_kv_heads = 8;
  std::uint32_t num_workers = 132;
  std::uint64_t seed = 1;
  std::size_t repetitions = 400;
  bool invariant = false;
};

struct Case {
  std::int32_t batch;
  const char* profile;
  double target_us;  // for 8 KV heads
};

constexpr Case kCases[] = {
    {256, "uniform:8k", 20},   {256, "lognormal:2k,1.2", 20},   {256, "uniform:300", 20},
    {4096, "uniform:8k", 400}, {4096, "lognormal:2k,1.2", 400}, {4096, "uniform:300", 400},
};

void measure(const Case& measured, const Options& options) {
  host::Planner planner({
      .max_requests = static_cast<std::uint32_t>(measured.batch),
      .num_kv_heads = options.num_kv_heads,
      .num_workers = options.num_workers,
      .max_seq_len = 131072,
      .invariant = options.invariant,
      .cost = {},
  });
  scheduler::PlanHeader header;
  std::vector<scheduler::WorkItem> items(planner.capacity().max_items);

  const Profile profile = Profile::parse(measured.profile);
  std::vector<std::vector<std::int32_t>> batches;
  for (std::uint64_t i = 0; i < kBatches; ++i) {
    batches.push_back(profile.lengths(measured.batch, options.seed + i));
  }

  std::vector<double> times_us;
  for (std::size_t i = 0; i < options.repetitions + kBatches; ++i) {
    const auto start = std::chrono::steady_clock::now();
    planner.plan(batches[i % kBatches], header, items);
    const auto stop = std::chrono::steady_clock::now();
    // The first round touches the memory.
    if (i >= kBatches) {
      times_us.push_back(std::chrono::duration<double, std::micro>(stop - start).count());
    }
  }
  fmt::print("{:>8} {:<18} {:>10.1f} {:>10.1f} {:>10.0f} {:>10} {:>10}\n", measured.batch,
             measured.profile, quantile(times_us, 0.5), quantile(times_us, 0.9), measured.target_us,
             header.num_items, header.num_partials);
}

}  // namespace
}  // namespace headrace::bench

int main(int argc, char** argv) {
  headrace::bench::Options options;
  CLI::App app("Times the planner on one core, against the targets for 8 KV heads.");
  app.add_option("--kv-heads", options.num_kv_heads)
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  app.add_option("--workers", options.num_workers, "workers to balance for")
      ->capture_default_str()
      ->check(CLI::Range(1, 65536));
  app.add_option("--seed", options.seed)->capture_default_str();
  app.add_option("--repetitions", options.repetitions)
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  app.add_flag("--invariant", options.invariant, "cut each request by its own length alone");
  CLI11_PARSE(app, argc, argv);

  fmt::print("{:>8} {:<18} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "requests", "profile",
             "median us", "90 % us", "target us", "items", "partials");
  for (const auto& measured : headrace::bench::kCases) headrace::bench::measure(measured, options);
  return 0;
}
