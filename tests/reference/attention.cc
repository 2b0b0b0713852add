#include "tests/reference/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headrace::tests {

AttentionResult attend(const AttentionInput& input) {
  const auto num_tokens = static_cast<std::size_t>(input.seq_len);
  const std::size_t head_dim = input.head_dim;
  AttentionResult result;
  result.out.assign(input.group * head_dim, 0.0);
  result.abs_out.assign(input.group * head_dim, 0.0);
  result.abs_out_scored.assign(input.group * head_dim, 0.0);
  result.lse.assign(input.group, -std::numeric_limits<double>::infinity());
  result.abs_score.assign(input.group, 0.0);
  if (num_tokens == 0) return result;

  std::vector<float> row(head_dim);
  std::vector<double> score(input.group * num_tokens);  // [group, num_tokens]
  std::vector<double> size(input.group * num_tokens);   // [group, num_tokens]
  for (std::size_t t = 0; t < num_tokens; ++t) {
    input.key(static_cast<std::int64_t>(t), row);
    for (std::size_t h = 0; h < input.group; ++h) {
      double dot = 0.0;
      double abs_dot = 0.0;
      for (std::size_t d = 0; d < head_dim; ++d) {
        const double product = double{input.q[h * head_dim + d]} * double{row[d]};
        dot += product;
        abs_dot += std::abs(product);
      }
      score[h * num_tokens + t] = input.score_scale * dot;
      size[h * num_tokens + t] = std::abs(input.score_scale) * abs_dot;
    }
  }

  std::vector<double> max(input.group);
  std::vector<double> sum(input.group);
  for (std::size_t h = 0; h < input.group; ++h) {
    const std::span<const double> scores(&score[h * num_tokens], num_tokens);
    max[h] = *std::max_element(scores.begin(), scores.end());
    for (const double s : scores) sum[h] += std::exp(s - max[h]);
    result.lse[h] = max[h] + std::log(sum[h]);
  }

  for (std::size_t t = 0; t < num_tokens; ++t) {
    input.value(static_cast<std::int64_t>(t), row);
    for (std::size_t h = 0; h < input.group; ++h) {
      const double weight = std::exp(score[h * num_tokens + t] - max[h]) / sum[h];
      const double token_size = size[h * num_tokens + t];
      result.abs_score[h] += weight * token_size;
      for (std::size_t d = 0; d < head_dim; ++d) {
        const double term = weight * input.value_scale * double{row[d]};
        result.out[h * head_dim + d] += term;
        result.abs_out[h * head_dim + d] += std::abs(term);
        result.abs_out_scored[h * head_dim + d] += std::abs(term) * token_size;
      }
    }
  }
  return result;
}

}  // namespace headrace::tests
