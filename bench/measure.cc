#include "bench/measure.h"

#include <cstddef>

#include "bench/statistics.h"

namespace headrace::bench {
namespace {

constexpr int kMaxRounds = 4;

}  // namespace

std::vector<double> repeat_us(const StopRule& rule, const std::function<double()>& sample) {
  std::vector<double> times_us;
  double total_us = 0;
  for (int round = 1; round <= kMaxRounds; ++round) {
    const auto repetitions = static_cast<std::size_t>(rule.min_repetitions * round);
    while (times_us.size() < repetitions || total_us < 1e6 * rule.min_time_s * round) {
      times_us.push_back(sample());
      total_us += times_us.back();
    }
    if (median_error_pct(times_us) <= rule.noise_pct) break;
  }
  return times_us;
}

Timing summarise(const std::vector<double>& samples_us, std::int32_t runs_per_sample,
                 double matched_copy_gbps) {
  return {
      .repetitions = static_cast<std::int32_t>(samples_us.size()),
      .us = quantile(samples_us, 0.5) / runs_per_sample,
      .spread_us = (quantile(samples_us, 0.9) - quantile(samples_us, 0.1)) / 2 / runs_per_sample,
      .matched_copy_gbps = matched_copy_gbps};
}

}  // namespace headrace::bench
