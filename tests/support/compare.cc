#include "tests/support/compare.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "tests/reference/attention.h"
#include "tests/reference/dtypes.h"

namespace headrace::tests {
namespace {

constexpr double kUnitRoundoff = 0x1p-24;
constexpr double kTermErrors = 4;
constexpr double kScoreErrors = 2;
constexpr double kTileTokens = 64;
constexpr double kUnderflow = 1e-30;

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
  return result.damage + out.mismatch() + lse.mismatch();
}

std::string defect(const Problem& problem, const Result& result) {
  return defect(problem, solve(problem), result);
}

}  // namespace headrace::tests
