#include "bench/check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "bench/number_format.h"
#include "bench/problem.h"
#include "bench/random.h"

namespace headrace::bench {
namespace {

double error_pct(double error, double size) {
  if (size > 0) return 100 * error / size;
  return error == 0 ? 0 : std::numeric_limits<double>::infinity();
}

}  // namespace

std::vector<RequestHead> sample_rows(std::span<const std::int32_t> seq_lens,
                                     std::int32_t num_qo_heads, std::int64_t max_tokens,
                                     std::uint64_t seed) {
  std::vector<RequestHead> rows;
  for (std::int32_t request = 0; request < static_cast<std::int32_t>(seq_lens.size()); ++request) {
    for (std::int32_t head = 0; head < num_qo_heads; ++head) rows.push_back({request, head});
  }
  const auto tokens = std::accumulate(seq_lens.begin(), seq_lens.end(), std::int64_t{0});
  if (tokens * num_qo_heads <= max_tokens) return rows;

  Random(seed).shuffle(std::span(rows));
  const auto length = [&](const RequestHead& row) {
    return std::int64_t{seq_lens[static_cast<std::size_t>(row.request)]};
  };
  const auto [shortest, longest] =
      std::minmax_element(rows.begin(), rows.end(),
                          [&](const auto& a, const auto& b) { return length(a) < length(b); });
  std::vector<RequestHead> sample{*longest};
  if (shortest != longest) sample.push_back(*shortest);
  std::int64_t sampled_tokens = length(*longest) + length(*shortest);
  for (const RequestHead& row : rows) {
    if (row == *longest || row == *shortest || sampled_tokens + length(row) > max_tokens) continue;
    sample.push_back(row);
    sampled_tokens += length(row);
  }
  return sample;
}

Error compare(std::span<const double> actual, std::span<const double> expected) {
  double error_squares = 0;
  double squares = 0;
  double max_error = 0;
  double max_value = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double error = std::abs(actual[i] - expected[i]);
    error_squares += error * error;
    squares += expected[i] * expected[i];
    max_error = std::max(max_error, error);
    max_value = std::max(max_value, std::abs(expected[i]));
  }
  // The largest of what follows a NaN says nothing.
  if (std::isnan(error_squares)) max_error = error_squares;
  return {.rms_pct = error_pct(std::sqrt(error_squares), std::sqrt(squares)),
          .max_pct = error_pct(max_error, max_value),
          .num_checked = 0,
          .num_rows = 0};
}

Error check(const Backend& backend, Problem& problem) {
  const ProblemConfig& config = problem.config();
  const NumberFormat format = format_of(HEADRACE_BFLOAT16);
  std::vector<std::byte> out(problem.out_bytes(), std::byte{0xFF});  // NaN
  backend.upload(problem.out(), out.data(), out.size());
  problem.run(0);
  backend.download(out.data(), problem.out(), out.size());

  const std::vector<RequestHead> rows =
      sample_rows(config.seq_lens, config.num_qo_heads, backend.reference_tokens(), config.seed);
  const std::vector<double> expected =
      backend.reference(problem.desc(), problem.args(0, nullptr), rows);
  std::vector<double> actual;
  actual.reserve(expected.size());
  for (const RequestHead& row : rows) {
    const std::int64_t first =
        (std::int64_t{row.request} * config.num_qo_heads + row.head) * config.pool.head_dim;
    for (std::int32_t d = 0; d < config.pool.head_dim; ++d) {
      actual.push_back(load(out.data(), first + d, format));
    }
  }
  Error error = compare(actual, expected);
  error.num_checked = static_cast<std::int64_t>(rows.size());
  error.num_rows = static_cast<std::int64_t>(config.seq_lens.size()) * config.num_qo_heads;
  return error;
}

}  // namespace headrace::bench
