// Whole-device runs over everything the CUDA executor takes: types, groups, pages, layouts,
// budgets.
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/support/compare.h"
#include "tests/support/problem.h"
#include "tests/support/run_problem.h"

namespace headrace::tests {
namespace {

constexpr std::pair<headrace_dtype, headrace_dtype> kQueryAndCache[] = {
    {HEADRACE_BFLOAT16, HEADRACE_BFLOAT16},
    {HEADRACE_BFLOAT16, HEADRACE_FLOAT8_E4M3},
    {HEADRACE_FLOAT16, HEADRACE_FLOAT16},
    {HEADRACE_FLOAT16, HEADRACE_FLOAT8_E4M3},
};

// Ends of pages, of stages (32 and 64 tokens) and of shares (64); one request is split.
const std::vector<std::int32_t> kLens = {5000, 0, 1, 63, 64, 65, 127, 128, 129, 31, 32, 33, 700};

ProblemSpec typed_spec(std::pair<headrace_dtype, headrace_dtype> types) {
  ProblemSpec spec{.seq_lens = kLens};
  spec.q_dtype = spec.out_dtype = types.first;
  spec.kv_dtype = types.second;
  return spec;
}

TEST_CASE("gpu: every pair of types with every group") {
  for (const auto& types : kQueryAndCache) {
    for (const std::int32_t group : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 20, 32, 64}) {
      CAPTURE(types.first, types.second, group);
      ProblemSpec spec = typed_spec(types);
      if (group > 16) spec.seq_lens = {1500, 0, 65, 1};
      spec.num_kv_heads = 2;
      spec.num_qo_heads = 2 * group;
      spec.scales = true;
      spec.wide_rows = group % 2 == 0;
      const Problem problem = make_problem(spec);
      CHECK(defect(problem, run_problem(problem, {.num_workers = 132})) == "");
    }
  }
}

TEST_CASE("gpu: every page size with every layout, with and without scales") {
  for (const auto& types : kQueryAndCache) {
    for (const std::int32_t page_size : {8, 16, 24, 32, 64, 128, 136}) {
      for (const headrace_layout layout : {HEADRACE_NHD, HEADRACE_HND}) {
        for (const Pools pools : {Pools::kApart, Pools::kInterleaved, Pools::kPadded}) {
          CAPTURE(types.first, types.second, page_size, layout, static_cast<int>(pools));
          ProblemSpec spec = typed_spec(types);
          spec.seq_lens = {1000, page_size - 1, page_size, page_size + 1, 64, 65, 0};
          spec.page_size = page_size;
          spec.layout = layout;
          spec.pools = pools;
          spec.scales = pools == Pools::kApart;
          spec.poison = layout == HEADRACE_NHD ? Poison::kNan : Poison::kInfinity;
          const Problem problem = make_problem(spec);
          CHECK(defect(problem, run_problem(problem, {.num_workers = 132})) == "");
        }
      }
    }
  }
}

TEST_CASE("gpu: head counts of real models, some heads split and others not") {
  for (const auto& [qo, kv] : {std::pair{28, 4}, {40, 8}, {24, 4}, {64, 4}, {32, 32}, {32, 8}}) {
    CAPTURE(qo, kv);
    ProblemSpec spec{.seq_lens = {9000, 90, 300, 2500}};
    spec.num_qo_heads = qo;
    spec.num_kv_heads = kv;
    const Problem problem = make_problem(spec);
    CHECK(defect(problem, run_problem(problem, {.num_workers = 132})) == "");
  }
}

TEST_CASE("gpu: any number of blocks, with and without lse, invariant or not") {
  for (const auto& types : kQueryAndCache) {
    const Problem problem = make_problem(typed_spec(types));
    const Expected expected = solve(problem);
    for (const std::int32_t num_workers : {1, 2, 5, 132, 200, 1000}) {
      for (const bool invariant : {false, true}) {
        for (const bool want_lse : {false, true}) {
          CAPTURE(types.first, types.second, num_workers, invariant, want_lse);
          RunOptions options;
          options.num_workers = num_workers;
          options.invariant = invariant;
          options.want_lse = want_lse;
          CHECK(defect(problem, expected, run_problem(problem, options)) == "");
        }
      }
    }
  }
}

// Attention sinks do this: one token takes nearly all, yet what the others add counts. Here each of
// 2^17 tokens has a probability of 2^-24.5 or 2^-25.5 of the first one's, which 16-bit
// probabilities can lose, and all of them together 2^-7.5 or 2^-8.5. Values are positive, so that
// losses add up.
TEST_CASE("gpu: one token far above very many others") {
  for (const auto& types : kQueryAndCache) {
    for (const float exponent : {24.5f, 25.5f}) {
      CAPTURE(types.first, types.second, exponent);
      ProblemSpec spec = typed_spec(types);
      spec.seq_lens = {1 << 17};
      spec.num_qo_heads = 2;
      spec.num_kv_heads = 1;
      spec.page_size = 64;
      // q k is 0, but 128 for the first token.
      spec.sm_scale = exponent * 0.6931472f / 128;
      Problem problem = make_problem(spec);
      const std::vector<float> ones(128, 1.0f);
      const std::vector<float> zeros(128, 0.0f);
      std::vector<float> value(128);
      for (std::int32_t h = 0; h < 2; ++h) problem.store_q(0, h, ones);
      for (std::int64_t t = 0; t < spec.seq_lens[0]; ++t) {
        problem.store_cache(problem.k, 0, t, 0, t == 0 ? ones : zeros);
        problem.load_cache(problem.v, 0, t, 0, value);
        for (float& element : value) element = t == 0 ? element / 16 : std::abs(element);
        problem.store_cache(problem.v, 0, t, 0, value);
      }
      const Expected expected = solve(problem);
      // The fewer blocks, the more tokens share a running maximum with the first one.
      for (const std::int32_t num_workers : {1, 132}) {
        CAPTURE(num_workers);
        const Result result = run_problem(problem, {.num_workers = num_workers});
        CHECK(defect(problem, expected, result) == "");
      }
    }
  }
}

TEST_CASE("gpu: equal copies of one request give equal rows on a whole device") {
  ProblemSpec spec{.seq_lens = std::vector<std::int32_t>(64, 1000)};
  spec.kv_dtype = HEADRACE_FLOAT8_E4M3;
  spec.shared_pages = 63;
  Problem problem = make_problem(spec);
  std::vector<float> row(128);
  for (std::size_t r = 1; r < 64; ++r) {
    for (std::int32_t h = 0; h < spec.num_qo_heads; ++h) {
      problem.load_q(0, h, row);
      problem.store_q(r, h, row);
    }
  }
  RunOptions options;
  options.num_workers = 132;
  options.invariant = true;
  const Result result = run_problem(problem, options);
  CHECK(defect(problem, result) == "");
  for (std::size_t r = 1; r < 64; ++r) {
    CHECK(request_bits(problem, result, r) == request_bits(problem, result, 0));
  }
}

}  // namespace
}  // namespace headrace::tests
