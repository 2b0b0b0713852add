// The reference itself, against answers that can be worked out by hand.
#include "tests/reference/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/catch.h"

namespace headrace::tests {
namespace {

// Two tokens with keys (1, 0) and (0, 1) and values (10, -2) and (20, 6).
AttentionInput two_tokens(std::span<const float> q) {
  AttentionInput input;
  input.group = q.size() / 2;
  input.head_dim = 2;
  input.seq_len = 2;
  input.q = q;
  input.key = [](std::int64_t token, std::span<float> row) {
    std::ranges::fill(row, 0.0f);
    row[static_cast<std::size_t>(token)] = 1.0f;
  };
  input.value = [](std::int64_t token, std::span<float> row) {
    row[0] = token == 0 ? 10.0f : 20.0f;
    row[1] = token == 0 ? -2.0f : 6.0f;
  };
  input.score_scale = 1.0;
  input.value_scale = 1.0;
  return input;
}

bool near(double value, double expected) {
  return std::abs(value - expected) <= 1e-14 * std::max(1.0, std::abs(expected));
}

TEST_CASE("reference: no token gives 0 and -inf") {
  const std::vector<float> q = {1.0f, 1.0f};
  AttentionInput input = two_tokens(q);
  input.seq_len = 0;
  const AttentionResult result = attend(input);
  CHECK(result.out == std::vector<double>{0.0, 0.0});
  CHECK(result.lse == std::vector<double>{-std::numeric_limits<double>::infinity()});
}

TEST_CASE("reference: two tokens, two heads, by hand") {
  // Head 0 scores both tokens 0; head 1 scores them log 3 apart, after the scale of 2.
  const auto half_log3 = static_cast<float>(std::log(3.0) / 2);
  const std::vector<float> q = {0.0f, 0.0f, half_log3, 0.0f};
  AttentionInput input = two_tokens(q);
  input.score_scale = 2.0;
  input.value_scale = 0.5;
  const AttentionResult result = attend(input);

  const double odds = std::exp(2.0 * half_log3);  // 3 but for the rounding of q
  CHECK(near(result.out[0], 7.5));
  CHECK(near(result.out[1], 1.0));
  CHECK(near(result.out[2], 0.5 * (odds * 10 + 20) / (odds + 1)));
  CHECK(near(result.out[3], 0.5 * (odds * -2 + 6) / (odds + 1)));
  CHECK(near(result.lse[0], std::log(2.0)));
  CHECK(near(result.lse[1], std::log(odds + 1)));

  CHECK(near(result.abs_out[1], 2.0));
  CHECK(near(result.abs_score[1], 2.0 * half_log3 * odds / (odds + 1)));
  CHECK(near(result.abs_out_scored[2], 0.5 * 2.0 * half_log3 * odds * 10 / (odds + 1)));
}

TEST_CASE("reference: scores of any size") {
  const std::vector<float> q = {-1e6f, -1e6f + 1.0f};
  const AttentionResult result = attend(two_tokens(q));
  const double weight = 1 / (1 + std::exp(1.0));
  CHECK(near(result.out[0], weight * 10 + (1 - weight) * 20));
  CHECK(near(result.lse[0], -1e6 + std::log(1 + std::exp(1.0))));
}

}  // namespace
}  // namespace headrace::tests
