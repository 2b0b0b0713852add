#include "tests/support/compare.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "tests/reference/attention.h"
#include "tests/reference/dtypes.h"
#include "tests/support/tested_device.h"

namespace headrace::tests {
namespace {

constexpr double kUnitRoundoff = 0x1p-24;
constexpr double kTermErrors = 4;
constexpr double kScoreErrors = 2;
constexpr double kTileTokens = 64;
constexpr double kUnderflow = 1e-30;

constexpr double kRmsBar = 0.0025;
constexpr double kRequestRmsBar = 0.003;
constexpr double kLargestBar = 0.005;
constexpr double kLseBar = 1e-5;
constexpr double kTensorCoreLseBounds = 4;

// The error of `value` in units of `bound`: at most 1 is right. Infinities and NaN are right only
// where they are expected.
double error_in_bounds(double value, double exact, double bound) {
  if (std::isnan(exact)) return std::isnan(value) ? 0 : HUGE_VAL;
  if (std::isinf(exact) || !std::isfinite(value)) return value == exact ? 0 : HUGE_VAL;
  return std::abs(value - exact) / bound;
}

// Keeps the worst of many elements, and what to say about it.
struct Worst {
  const char* name;
  double error = 0;
  std::string text;

  void add(double value, double exact, double bound, std::size_t request, std::int32_t head,
           std::int32_t d) {
    const double in_bounds = error_in_bounds(value, exact, bound);
    if (in_bounds <= error) return;
    error = in_bounds;
    std::ostringstream stream;
    stream.precision(9);
    stream << name << "[" << request << ", " << head << ", " << d << "] is " << value
           << ", expected " << exact << " within " << bound << "; ";
    text = stream.str();
  }

  std::string mismatch() const { return error <= 1 ? "" : text; }
};

std::string float32_defect(const Problem& problem, const Expected& expected, const Result& result) {
  Worst out{.name = "out", .text = {}};
  Worst lse{.name = "lse", .text = {}};
  std::size_t row = 0;  // request * num_qo_heads + head
  for (std::size_t r = 0; r < problem.num_requests(); ++r) {
    for (std::int32_t h = 0; h < problem.desc.num_qo_heads; ++h, ++row) {
      const std::vector<float> values = out_row(problem, result, r, h);
      for (std::size_t d = 0; d < values.size(); ++d) {
        const std::size_t i = row * values.size() + d;
        const double slack = expected.out_slack[i];
        const double rounding = half_ulp(problem.desc.out_dtype, std::abs(expected.out[i]) + slack);
        out.add(values[d], expected.out[i], slack + rounding, r, h, static_cast<std::int32_t>(d));
      }
      if (!result.lse.empty()) {
        lse.add(lse_value(problem, result, r, h), expected.lse[row], expected.lse_slack[row], r, h,
                0);
      }
    }
  }
  return out.mismatch() + lse.mismatch();
}

// The errors of several outputs together.
struct Errors {
  double squares = 0;
  double exact_squares = 0;
  double largest = 0;
  double exact_largest = 0;
  std::int64_t count = 0;
  std::int64_t wrong_kind = 0;  // NaN or infinite where the exact value is not, or the reverse

  void add(double value, double exact) {
    ++count;
    if (!std::isfinite(exact) || !std::isfinite(value)) {
      const bool same = std::isnan(exact) ? std::isnan(value) : value == exact;
      wrong_kind += same ? 0 : 1;
      return;
    }
    squares += (value - exact) * (value - exact);
    exact_squares += exact * exact;
    largest = std::max(largest, std::abs(value - exact));
    exact_largest = std::max(exact_largest, std::abs(exact));
  }

  void add(const Errors& other) {
    squares += other.squares;
    exact_squares += other.exact_squares;
    largest = std::max(largest, other.largest);
    exact_largest = std::max(exact_largest, other.exact_largest);
    count += other.count;
    wrong_kind += other.wrong_kind;
  }

  std::string mismatch(const std::string& name, double rms_bar) const {
    if (wrong_kind == 0 && std::sqrt(squares) <= rms_bar * std::sqrt(exact_squares) &&
        largest <= kLargestBar * exact_largest) {
      return "";
    }
    const auto rms = [this](double sum) { return std::sqrt(sum / static_cast<double>(count)); };
    std::ostringstream stream;
    stream << name << ": error RMS " << rms(squares) << " of " << rms(exact_squares)
           << " (bar: " << rms_bar << " of it), largest " << largest << " of " << exact_largest
           << " (bar: " << kLargestBar << " of it), " << wrong_kind << " of " << count
           << " not finite; ";
    return stream.str();
  }
};

std::string tensor_core_defect(const Problem& problem, const Expected& expected,
                               const Result& result) {
  Errors whole;
  Worst lse{.name = "lse", .text = {}};
  std::string mismatches;
  std::size_t row = 0;  // request * num_qo_heads + head
  for (std::size_t r = 0; r < problem.num_requests(); ++r) {
    Errors request;
    for (std::int32_t h = 0; h < problem.desc.num_qo_heads; ++h, ++row) {
      const std::vector<float> values = out_row(problem, result, r, h);
      for (std::size_t d = 0; d < values.size(); ++d) {
        request.add(values[d], expected.out[row * values.size() + d]);
      }
      if (!result.lse.empty()) {
        const double exact = expected.lse[row];
        const double bound = std::max(kLseBar * std::max(1.0, std::abs(exact)),
                                      kTensorCoreLseBounds * expected.lse_slack[row]);
        lse.add(lse_value(problem, result, r, h), exact, bound, r, h, 0);
      }
    }
    if (mismatches.empty()) {
      mismatches = request.mismatch("out[" + std::to_string(r) + "]", kRequestRmsBar);
    }
    whole.add(request);
  }
  return whole.mismatch("out", kRmsBar) + mismatches + lse.mismatch();
}

}  // namespace

Expected solve(const Problem& problem) {
  const auto head_dim = static_cast<std::size_t>(problem.desc.head_dim);
  const std::int32_t group = problem.group();
  Expected expected;
  for (std::size_t r = 0; r < problem.num_requests(); ++r) {
    for (std::int32_t g = 0; g < problem.desc.num_kv_heads; ++g) {
      std::vector<float> q(static_cast<std::size_t>(group) * head_dim);
      for (std::int32_t h = 0; h < group; ++h) {
        problem.load_q(r, g * group + h,
                       std::span(q).subspan(static_cast<std::size_t>(h) * head_dim, head_dim));
      }
      const auto scale = [g](const std::vector<float>& scales) {
        return scales.empty() ? 1.0 : double{scales[static_cast<std::size_t>(g)]};
      };
      const auto reader = [&](const PoolView& pool) {
        return [&, r, g](std::int64_t token, std::span<float> row) {
          problem.load_cache(pool, r, token, g, row);
        };
      };
      const AttentionResult result =
          attend({.group = static_cast<std::size_t>(group),
                  .head_dim = head_dim,
                  .seq_len = problem.seq_lens[r],
                  .q = q,
                  .key = reader(problem.k),
                  .value = reader(problem.v),
                  .score_scale = problem.desc.sm_scale * scale(problem.k_scale),
                  .value_scale = scale(problem.v_scale)});

      const double underflow = problem.seq_lens[r] == 0 ? 0 : kUnderflow;
      const double terms = kTermErrors + std::sqrt(problem.seq_lens[r] / kTileTokens);
      for (std::size_t i = 0; i < result.out.size(); ++i) {
        expected.out.push_back(result.out[i]);
        expected.out_slack.push_back(
            underflow + kUnitRoundoff * (2 * terms * result.abs_out[i] +
                                         kScoreErrors * (result.abs_out_scored[i] +
                                                         std::abs(result.out[i]) *
                                                             result.abs_score[i / head_dim])));
      }
      for (std::size_t h = 0; h < result.lse.size(); ++h) {
        expected.lse.push_back(result.lse[h]);
        expected.lse_slack.push_back(kUnitRoundoff * (terms + kScoreErrors * result.abs_score[h] +
                                                      2 * std::abs(result.lse[h])));
      }
    }
  }
  return expected;
}

std::string defect(const Problem& problem, const Expected& expected, const Result& result) {
  const auto compare = kTestedDevice == HEADRACE_DEVICE_CUDA ? tensor_core_defect : float32_defect;
  return result.damage + compare(problem, expected, result);
}

std::string defect(const Problem& problem, const Result& result) {
  return defect(problem, solve(problem), result);
}

}  // namespace headrace::tests
