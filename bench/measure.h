// Times a problem and the memory in turn.
#pragma once

#include <cstdint>

#include "bench/device.h"
#include "bench/memory_meter.h"
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
  MemorySpeed memory;  // measured between the repetitions
};

Measurement measure(const Device& device, Problem& problem, MemoryMeter& meter,
                    const StopRule& rule);

}  // namespace headrace::bench
