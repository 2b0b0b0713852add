// Compares sampled results with a float64 computation.
#pragma once

#include "bench/problem.h"

namespace headrace::bench {

// Rounding the exact result to bf16 alone costs 0.17 % on average.
inline constexpr double kMaxRmsErrorPct = 0.25;

// The error of the problem's last run over num_samples random (request, query head) pairs, the
// longest request among them, in per cent: each row's error RMS over its reference RMS, then the
// RMS over rows. NaN where the output has one; not 0 where a request without tokens has output.
double rms_error_pct(const Problem& problem, int num_samples);

}  // namespace headrace::bench
