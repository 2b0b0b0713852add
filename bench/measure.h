// When a measurement is certain enough, and what it came to.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace headrace::bench {

// A round ends when both minima are met; up to four rounds are run, until the median is certain to
// noise_pct.
struct StopRule {
  std::int32_t min_repetitions;
  double min_time_s;
  double noise_pct;
};

// Of one run of a problem.
struct Timing {
  std::int32_t repetitions;
  double us;                 // median
  double spread_us;          // half of the distance between the 10th and the 90th percentile
  double matched_copy_gbps;  // a copy that moves as many bytes
};

// The times that `sample` returns, one per call, as many as the rule asks for.
std::vector<double> repeat_us(const StopRule& rule, const std::function<double()>& sample);

// Of samples that each took runs_per_sample runs.
Timing summarise(const std::vector<double>& samples_us, std::int32_t runs_per_sample,
                 double matched_copy_gbps);

}  // namespace headrace::bench
