// Head counts, and requests that are copies of one another.
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/support/compare.h"
#include "tests/support/problem.h"
#include "tests/support/run_problem.h"

namespace headrace::tests {
namespace {

TEST_CASE("decode: groups 1 to 16 with 1 to 8 KV heads") {
  for (const std::int32_t num_kv_heads : {1, 2, 4, 8}) {
    for (const std::int32_t group : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16}) {
      CAPTURE(num_kv_heads, group);
      ProblemSpec spec{.seq_lens = {700, 3, 64}};
      spec.num_kv_heads = num_kv_heads;
      spec.num_qo_heads = num_kv_heads * group;
      spec.kv_dtype = group % 2 == 0 ? HEADRACE_BFLOAT16 : HEADRACE_FLOAT8_E4M3;
      const Problem problem = make_problem(spec);
      CHECK(defect(problem, run_problem(problem, {.num_workers = 3})) == "");
    }
  }
}

TEST_CASE("decode: head counts of real models") {
  for (const auto& [qo, kv] : {std::pair{28, 4}, {40, 8}, {24, 4}, {64, 4}, {64, 1}}) {
    CAPTURE(qo, kv);
    ProblemSpec spec{.seq_lens = {1500, 90, 300}};
    spec.num_qo_heads = qo;
    spec.num_kv_heads = kv;
    const Problem problem = make_problem(spec);
    CHECK(defect(problem, run_problem(problem, {.num_workers = 3})) == "");
  }
}

TEST_CASE("decode: one request copied 64 times gives equal rows") {
  ProblemSpec spec{.seq_lens = std::vector<std::int32_t>(64, 1000)};
  spec.shared_pages = 63;
  Problem problem = make_problem(spec);
  std::vector<float> row(128);
  for (std::size_t r = 1; r < 64; ++r) {
    for (std::int32_t h = 0; h < spec.num_qo_heads; ++h) {
      problem.load_q(0, h, row);
      problem.store_q(r, h, row);
    }
  }
  // Where the planner may cut copies differently, the bits may differ: not in invariant mode.
  for (const std::int32_t num_workers : {1, 3, many_workers()}) {
    CAPTURE(num_workers);
    const Result result = run_problem(problem, {.num_workers = num_workers, .invariant = true});
    CHECK(defect(problem, result) == "");
    for (std::size_t r = 1; r < 64; ++r) {
      CHECK(request_bits(problem, result, r) == request_bits(problem, result, 0));
    }
  }
  CHECK(defect(problem, run_problem(problem, {.num_workers = 3})) == "");
}

}  // namespace
}  // namespace headrace::tests
