#include "bench/check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "bench/number_format.h"
#include "bench/random.h"

namespace headrace::bench {
namespace {

// softmax(sm_scale * k_scale * K q) V * v_scale of one query head, [head_dim].
std::vector<double> reference_row(const Problem& problem, std::int64_t request, std::int32_t head) {
  const ProblemConfig& config = problem.config();
  const PoolShape& pool = config.pool;
  const NumberFormat q_format = format_of(HEADRACE_BFLOAT16);
  const NumberFormat kv_format = format_of(pool.dtype);
  const std::int32_t kv_head = head / (config.num_qo_heads / pool.num_kv_heads);
  const std::int32_t length = config.seq_lens[static_cast<std::size_t>(request)];
  const std::int32_t* pages =
      problem.pools().block_table(problem.last_set()) + request * problem.pools().table_stride();
  const auto offset = [&](std::int32_t token) {
    return pool.offset(pages[token / pool.page_size], token % pool.page_size, kv_head);
  };

  std::vector<double> q(static_cast<std::size_t>(pool.head_dim));
  for (std::size_t d = 0; d < q.size(); ++d) {
    const std::int64_t row = request * config.num_qo_heads + head;
    q[d] = load(problem.q(), row * pool.head_dim + static_cast<std::int64_t>(d), q_format);
  }
  std::vector<double> scores(static_cast<std::size_t>(length));
  for (std::int32_t token = 0; token < length; ++token) {
    double dot = 0;
    for (std::size_t d = 0; d < q.size(); ++d) {
      dot +=
          q[d] * load(problem.pools().k(), offset(token) + static_cast<std::int64_t>(d), kv_format);
    }
    scores[static_cast<std::size_t>(token)] = dot * problem.sm_scale() * problem.k_scale(kv_head);
  }

  std::vector<double> out(q.size());
  if (length == 0) return out;
  const double max = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (std::int32_t token = 0; token < length; ++token) {
    const double weight = std::exp(scores[static_cast<std::size_t>(token)] - max);
    sum += weight;
    for (std::size_t d = 0; d < out.size(); ++d) {
      out[d] += weight *
                load(problem.pools().v(), offset(token) + static_cast<std::int64_t>(d), kv_format);
    }
  }
  for (double& value : out) value *= problem.v_scale(kv_head) / sum;
  return out;
}

// Mean square error of a row relative to the reference's mean square.
double relative_square_error(const Problem& problem, std::int64_t request, std::int32_t head) {
  const NumberFormat format = format_of(HEADRACE_BFLOAT16);
  const std::vector<double> expected = reference_row(problem, request, head);
  const std::int64_t row = request * problem.config().num_qo_heads + head;
  double error = 0;
  double square = 0;
  for (std::size_t d = 0; d < expected.size(); ++d) {
    const std::int64_t index = row * problem.config().pool.head_dim + static_cast<std::int64_t>(d);
    const double difference = load(problem.out(), index, format) - expected[d];
    error += difference * difference;
    square += expected[d] * expected[d];
  }
  if (square > 0) return error / square;
  return error == 0 ? 0 : std::numeric_limits<double>::infinity();
}

}  // namespace

double rms_error_pct(const Problem& problem, int num_samples) {
  const std::vector<std::int32_t>& seq_lens = problem.config().seq_lens;
  Random random(problem.config().seed);
  double sum = 0;
  for (int sample = 0; sample < num_samples; ++sample) {
    const std::int64_t request =
        sample == 0 ? std::max_element(seq_lens.begin(), seq_lens.end()) - seq_lens.begin()
                    : static_cast<std::int64_t>(random.below(seq_lens.size()));
    const auto heads = static_cast<std::size_t>(problem.config().num_qo_heads);
    sum += relative_square_error(problem, request, static_cast<std::int32_t>(random.below(heads)));
  }
  return 100 * std::sqrt(sum / num_samples);
}

}  // namespace headrace::bench
