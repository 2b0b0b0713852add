// Compares results with a float64 computation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/backend.h"

namespace headrace::bench {

// Rounding the exact result to bf16 alone costs an RMS error of 0.17 %.
inline constexpr double kMaxRmsErrorPct = 0.25;
inline constexpr double kMaxErrorPct = 0.5;

struct Error {
  double rms_pct;            // of the error over the RMS of the reference
  double max_pct;            // largest error over the largest reference value
  std::int64_t num_checked;  // (request, query head) pairs
  std::int64_t num_rows;     // pairs there are

  bool is_small() const { return rms_pct <= kMaxRmsErrorPct && max_pct <= kMaxErrorPct; }
};

// All pairs if their lengths sum up to at most max_tokens; else one of the longest and one of the
// shortest request, and random ones that fit.
std::vector<RequestHead> sample_rows(std::span<const std::int32_t> seq_lens,
                                     std::int32_t num_qo_heads, std::int64_t max_tokens,
                                     std::uint64_t seed);

// Both [rows, elements per row]. NaN where `actual` has one; infinite where only zeros are right
// and there are others.
Error compare(std::span<const double> actual, std::span<const double> expected);

// Runs the problem on its first KV set.
Error check(const Backend& backend, Problem& problem);

}  // namespace headrace::bench
