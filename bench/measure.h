// Times a problem and the copy in turn.
#pragma once

#include <cstdint>

#include "bench/copy.h"
#include "bench/device.h"
#include "bench/problem.h"

namespace headrace::bench {

// A round ends when both minima are met; up to four rounds are run, until the median is certain to
// noise_pct.
struct StopRule {
  std::int32_t min_repetitions;
  double min_time_s;
  double noise_pct;
};

struct Measurement {
  std::int32_t repetitions;
  double median_us;
  double p10_us;
  double p90_us;
  double copy_gbps;  // measured between the repetitions
};

Measurement measure(const Device& device, Problem& problem, CopyMeter& copy, const StopRule& rule);

}  // namespace headrace::bench
