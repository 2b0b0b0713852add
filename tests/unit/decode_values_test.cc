// Values: large and small scores, unusual scales, and which tokens were seen how often.
#include <cmath>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/reference/dtypes.h"
#include "tests/support/compare.h"
#include "tests/support/problem.h"
#include "tests/support/run_problem.h"

namespace headrace::tests {
namespace {

constexpr headrace_dtype kCacheDtypes[] = {HEADRACE_BFLOAT16, HEADRACE_FLOAT16, HEADRACE_FLOAT32,
                                           HEADRACE_FLOAT8_E4M3};
constexpr headrace_dtype kOutDtypes[] = {HEADRACE_BFLOAT16, HEADRACE_FLOAT16, HEADRACE_FLOAT32};

ProblemSpec wide_out_spec(std::vector<std::int32_t> seq_lens) {
  ProblemSpec spec{.seq_lens = std::move(seq_lens)};
  spec.out_dtype = widest_out_dtype();
  return spec;
}

TEST_CASE("decode: every combination of types") {
  for (const headrace_dtype q_dtype : kOutDtypes) {
    for (const headrace_dtype kv_dtype : kCacheDtypes) {
      for (const headrace_dtype out_dtype : kOutDtypes) {
        CAPTURE(q_dtype, kv_dtype, out_dtype);
        ProblemSpec spec{.seq_lens = {200, 65, 1}};
        spec.q_dtype = q_dtype;
        spec.kv_dtype = kv_dtype;
        spec.out_dtype = out_dtype;
        if (!supported(spec)) continue;
        const Problem problem = make_problem(spec);
        CHECK(defect(problem, run_problem(problem)) == "");
      }
    }
  }
}

TEST_CASE("decode: inputs of deviation 1, 4, 10 and 30") {
  for (const headrace_dtype kv_dtype : kCacheDtypes) {
    for (const float deviation : {1.0f, 4.0f, 10.0f, 30.0f}) {
      CAPTURE(kv_dtype, deviation);
      ProblemSpec spec = wide_out_spec({1000, 65});
      set_cache_dtype(spec, kv_dtype);
      if (!supported(spec)) continue;
      spec.q_deviation = spec.kv_deviation = deviation;
      const Problem problem = make_problem(spec);
      CHECK(defect(problem, run_problem(problem)) == "");
    }
  }
}

TEST_CASE("decode: all scores far from 0, on either side") {
  for (const headrace_dtype kv_dtype : kCacheDtypes) {
    for (const float sign : {-1.0f, 1.0f}) {
      CAPTURE(kv_dtype, sign);
      ProblemSpec spec = wide_out_spec({700, 64, 1});
      set_cache_dtype(spec, kv_dtype);
      if (!supported(spec)) continue;
      spec.sm_scale = 1.0f;
      Problem problem = make_problem(spec);
      // q k = +-128 * 32 * 16 = +-65536, and a little more from every 7th element of K.
      const std::vector<float> q(128, 32.0f);
      std::vector<float> k(128, sign * 16.0f);
      for (std::size_t r = 0; r < problem.num_requests(); ++r) {
        for (std::int32_t h = 0; h < spec.num_qo_heads; ++h) problem.store_q(r, h, q);
        for (std::int64_t t = 0; t < problem.seq_lens[r]; ++t) {
          k[0] = sign * (t % 7 == 0 ? 16.0f : 15.0f);
          for (std::int32_t g = 0; g < 2; ++g) problem.store_cache(problem.k, r, t, g, k);
        }
      }
      const Result result = run_problem(problem);
      CHECK(defect(problem, result) == "");
      CHECK(std::abs(lse_value(problem, result, 0, 0)) > 5e4f);
    }
  }
}

TEST_CASE("decode: any sm_scale") {
  for (const float sm_scale : {0.0f, -0.0f, -0.3f, 3.0f, 1e-6f, -1e-30f, 1e-42f}) {
    CAPTURE(sm_scale);
    ProblemSpec spec = wide_out_spec({900, 17, 0});
    spec.sm_scale = sm_scale;
    const Problem problem = make_problem(spec);
    CHECK(defect(problem, run_problem(problem)) == "");
  }
}

TEST_CASE("decode: sm_scale 0 gives the mean of V and the log of the length") {
  ProblemSpec spec = wide_out_spec({512});
  spec.sm_scale = 0.0f;
  const Problem problem = make_problem(spec);
  const Result result = run_problem(problem);
  std::vector<double> mean(128);
  std::vector<float> row(128);
  for (std::int64_t t = 0; t < 512; ++t) {
    problem.load_cache(problem.v, 0, t, 1, row);
    for (std::size_t d = 0; d < 128; ++d) mean[d] += row[d] / 512.0;
  }
  const std::vector<float> out = out_row(problem, result, 0, 7);
  for (std::size_t d = 0; d < 128; ++d) {
    CHECK(std::abs(out[d] - mean[d]) < 1e-6 + half_ulp(spec.out_dtype, std::abs(mean[d])));
  }
  CHECK(std::abs(lse_value(problem, result, 0, 7) - std::log(512.0)) < 2e-6);
}

// With q = 0 all tokens weigh the same, and with one-hot V an output element is the number of
// tokens with its position, divided by the length.
TEST_CASE("decode: every token is seen exactly once") {
  const std::vector<std::int32_t> seq_lens = {1, 63, 64, 65, 129, 1000, 0, 4097};
  constexpr std::int64_t kHeadDim = 128;
  for (const headrace_dtype kv_dtype : kCacheDtypes) {
    // Positions of tokens within 128, then which 128.
    for (const std::int64_t divisor : {std::int64_t{1}, kHeadDim}) {
      ProblemSpec spec = wide_out_spec(seq_lens);
      set_cache_dtype(spec, kv_dtype);
      if (!supported(spec)) continue;
      Problem problem = make_problem(spec);
      const auto position = [divisor](std::int64_t token) {
        return static_cast<std::size_t>(token / divisor % kHeadDim);
      };
      const std::vector<float> zeros(kHeadDim, 0.0f);
      for (std::size_t r = 0; r < seq_lens.size(); ++r) {
        for (std::int32_t h = 0; h < spec.num_qo_heads; ++h) problem.store_q(r, h, zeros);
        for (std::int64_t t = 0; t < seq_lens[r]; ++t) {
          std::vector<float> one_hot = zeros;
          one_hot[position(t)] = 1.0f;
          for (std::int32_t g = 0; g < 2; ++g) problem.store_cache(problem.v, r, t, g, one_hot);
        }
      }
      for (const std::int32_t num_workers : {1, 3}) {
        const Result result = run_problem(problem, {.num_workers = num_workers});
        CHECK(result.damage == "");
        for (std::size_t r = 0; r < seq_lens.size(); ++r) {
          CAPTURE(kv_dtype, divisor, num_workers, seq_lens[r]);
          std::vector<std::int64_t> expected(kHeadDim);
          for (std::int64_t t = 0; t < seq_lens[r]; ++t) ++expected[position(t)];
          for (std::int32_t h = 0; h < spec.num_qo_heads; ++h) {
            std::vector<std::int64_t> seen;
            for (const float value : out_row(problem, result, r, h)) {
              seen.push_back(std::lround(value * static_cast<float>(seq_lens[r])));
            }
            CHECK(seen == expected);
          }
        }
      }
    }
  }
}

TEST_CASE("decode: k_scale and v_scale are applied once, each to its own") {
  for (const headrace_dtype kv_dtype : kCacheDtypes) {
    ProblemSpec spec = wide_out_spec({700, 64, 0, 5});
    set_cache_dtype(spec, kv_dtype);
    if (!supported(spec)) continue;
    spec.num_kv_heads = 4;
    spec.scales = true;
    const Problem both = make_problem(spec);
    Problem only_k = both;
    only_k.v_scale.clear();
    Problem only_v = both;
    only_v.k_scale.clear();
    Problem odd = both;  // negative, tiny, large, zero
    odd.k_scale = {-0.5f, 1e-20f, 4.0f, 0.0f};
    odd.v_scale = {3.0f, 1e10f, -1e-10f, 0.0f};
    for (const Problem& problem : {both, only_k, only_v, odd}) {
      CAPTURE(kv_dtype, problem.k_scale, problem.v_scale);
      CHECK(defect(problem, run_problem(problem)) == "");
    }
  }
}

}  // namespace
}  // namespace headrace::tests
