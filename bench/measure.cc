#include "bench/measure.h"

#include <cstddef>
#include <vector>

#include "bench/statistics.h"

namespace headrace::bench {
namespace {

constexpr int kMaxRounds = 4;
// Of the time spent on runs, what copying and reading may take.
constexpr double kMemoryShare = 0.5;

}  // namespace

Measurement measure(const Device& device, Problem& problem, MemoryMeter& meter,
                    const StopRule& rule) {
  meter.forget();
  problem.run_next();  // wakes the workers and touches every buffer once
  std::vector<double> times_us;
  double runs_us = 0;
  double memory_us = 0;
  for (int round = 1; round <= kMaxRounds; ++round) {
    const auto repetitions = static_cast<std::size_t>(rule.min_repetitions * round);
    while (times_us.size() < repetitions || runs_us < 1e6 * rule.min_time_s * round) {
      times_us.push_back(device.time_us([&] { problem.run_next(); }));
      runs_us += times_us.back();
      if (memory_us < kMemoryShare * runs_us) memory_us += meter.sample_us();
    }
    if (median_error_pct(times_us) <= rule.noise_pct) break;
  }
  return {.repetitions = static_cast<std::int32_t>(times_us.size()),
          .median_us = quantile(times_us, 0.5),
          .p10_us = quantile(times_us, 0.1),
          .p90_us = quantile(times_us, 0.9),
          .memory = meter.speed()};
}

}  // namespace headrace::bench
