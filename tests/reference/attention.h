// Decode attention in float64, in plain loops: what every kernel is measured against.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace headrace::tests {

// Fills a row [head_dim] with the key or value of a token, as stored (not yet scaled).
using RowReader = std::function<void(std::int64_t token, std::span<float> row)>;

// One request, one KV head, and the query heads it serves.
struct AttentionInput {
  std::size_t group;
  std::size_t head_dim;
  std::int64_t seq_len;
  std::span<const float> q;  // [group, head_dim]
  RowReader key;
  RowReader value;
  double score_scale;  // sm_scale * k_scale
  double value_scale;  // v_scale
};

// Besides the result, sums over absolute values: they tell how much a relative error in single
// terms can change the result. With w[t] the softmax weight of a token and
// size[t] = |score_scale| sum_d |q[d] k[t, d]|, which bounds its score:
struct AttentionResult {
  std::vector<double> out;  // [group, head_dim]
  std::vector<double> lse;  // [group]

  std::vector<double> abs_out;         // [group, head_dim]: sum_t w[t] |v[t]|
  std::vector<double> abs_out_scored;  // [group, head_dim]: sum_t w[t] size[t] |v[t]|
  std::vector<double> abs_score;       // [group]: sum_t w[t] size[t]
};

AttentionResult attend(const AttentionInput& input);

}  // namespace headrace::tests
