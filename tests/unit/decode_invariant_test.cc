// Invariant mode: a request gives the same bits alone and in any batch.
#include <cstdio>
#include <numeric>
#include <vector>

#include "tests/catch.h"
#include "tests/support/compare.h"
#include "tests/support/problem.h"
#include "tests/support/random.h"
#include "tests/support/run_problem.h"

namespace headrace::tests {
namespace {

constexpr std::uint64_t kSeed = 22;
constexpr std::int32_t kLongest = 2000;
constexpr std::size_t kNumRequests = 255;

Problem many_requests() {
  std::printf("invariant: seed %d\n", static_cast<int>(kSeed));
  Random random(kSeed);
  ProblemSpec spec;
  for (std::size_t r = 0; r < kNumRequests; ++r) {
    spec.seq_lens.push_back(static_cast<std::int32_t>(
        random.one_in(20) ? random.between(600, kLongest) : random.between(0, 100)));
  }
  spec.seq_lens[0] = kLongest;
  spec.num_qo_heads = 4;
  spec.num_kv_heads = 1;
  spec.head_dim = smallest_head_dim();
  spec.out_dtype = widest_out_dtype();
  return make_problem(spec);
}

RunOptions invariant_options(std::int32_t num_workers) {
  RunOptions options;
  options.num_workers = num_workers;
  options.invariant = true;
  options.max_seq_len = kLongest;
  return options;
}

TEST_CASE("decode: equal bits alone and in shuffled batches of 2, 32, 33 and 255") {
  const Problem all = many_requests();
  std::vector<std::size_t> order(kNumRequests);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<std::vector<std::byte>> alone;  // [requests]
  for (const std::size_t r : order) {
    const Problem one = select_requests(all, {&r, 1});
    alone.push_back(request_bits(one, run_problem(one, invariant_options(1)), 0));
  }

  Random random(kSeed);
  for (const std::size_t batch : {std::size_t{2}, std::size_t{32}, std::size_t{33}, kNumRequests}) {
    for (const std::int32_t num_workers : {1, 2, many_workers()}) {
      random.shuffle(order);
      const Problem some = select_requests(all, std::span(order).first(batch));
      const Result result = run_problem(some, invariant_options(num_workers));
      if (batch == kNumRequests) CHECK(defect(some, result) == "");
      for (std::size_t i = 0; i < batch; ++i) {
        CAPTURE(batch, num_workers, order[i], some.seq_lens[i]);
        CHECK(request_bits(some, result, i) == alone[order[i]]);
      }
    }
  }
}

TEST_CASE("decode: equal bits whatever lengths the invariant plan was made for") {
  const std::size_t chosen[] = {0, 7, 100};
  const Problem problem = select_requests(many_requests(), chosen);
  RunOptions options = invariant_options(2);
  const Result right = run_problem(problem, options);
  CHECK(defect(problem, right) == "");
  // Another order of the queue, the same cuts.
  options.num_workers = 4;
  CHECK(run_problem(problem, options) == right);
}

}  // namespace
}  // namespace headrace::tests
