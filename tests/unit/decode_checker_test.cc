// The checks themselves: each finds what it is there for.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/reference/dtypes.h"
#include "tests/support/compare.h"
#include "tests/support/problem.h"
#include "tests/support/problem_memory.h"
#include "tests/support/run_problem.h"

namespace headrace::tests {
namespace {

constexpr headrace_dtype kOutDtypes[] = {HEADRACE_BFLOAT16, HEADRACE_FLOAT16, HEADRACE_FLOAT32};

ProblemSpec checker_spec(headrace_dtype out_dtype) {
  ProblemSpec spec{.seq_lens = {100, 64}};
  spec.out_dtype = out_dtype;
  spec.scales = true;
  return spec;
}

bool mentions(const std::string& text, const std::string& word) {
  return text.find(word) != std::string::npos;
}

// What is said when `other` is computed in place of `problem`.
std::string defect_of(const Problem& problem, const Problem& other) {
  return defect(problem, solve(problem), run_problem(other));
}

TEST_CASE("checker: one token dropped, or one counted twice") {
  for (const headrace_dtype dtype : kOutDtypes) {
    CAPTURE(dtype);
    const Problem problem = make_problem(checker_spec(dtype));
    CHECK(defect_of(problem, problem) == "");
    Problem dropped = problem;
    dropped.seq_lens[0] -= 1;
    CHECK(mentions(defect_of(problem, dropped), "out[0"));
    CHECK(mentions(defect_of(problem, dropped), "lse[0"));

    Problem twice = problem;
    std::vector<float> row(128);
    for (const PoolView& pool : {problem.k, problem.v}) {
      problem.load_cache(pool, 1, 5, 0, row);
      twice.store_cache(pool, 1, 6, 0, row);
    }
    CHECK(mentions(defect_of(problem, twice), "out[1"));
  }
}

TEST_CASE("checker: scales left out, applied twice or to the other tensor") {
  for (const headrace_dtype dtype : kOutDtypes) {
    CAPTURE(dtype);
    const Problem problem = make_problem(checker_spec(dtype));
    Problem wrong = problem;
    wrong.k_scale.clear();
    CHECK(mentions(defect_of(problem, wrong), "lse"));
    wrong = problem;
    for (float& scale : wrong.k_scale) scale *= scale;
    CHECK(mentions(defect_of(problem, wrong), "lse"));
    wrong = problem;
    for (float& scale : wrong.v_scale) scale *= scale;
    CHECK(mentions(defect_of(problem, wrong), "out"));
    wrong = problem;
    std::swap(wrong.k_scale, wrong.v_scale);
    CHECK(mentions(defect_of(problem, wrong), "out"));
    wrong = problem;
    std::ranges::reverse(wrong.v_scale);
    CHECK(mentions(defect_of(problem, wrong), "out"));
  }
}

TEST_CASE("checker: results that are slightly off") {
  for (const headrace_dtype dtype : kOutDtypes) {
    CAPTURE(dtype);
    const Problem problem = make_problem(checker_spec(dtype));
    const Expected expected = solve(problem);
    const Result right = run_problem(problem);
    const std::int64_t at = problem.out_rows.at(1, 3) + 17;
    const std::size_t exact = (1 * 8 + 3) * 128 + 17;

    // The neighbour of the right value, on the far side of the exact one.
    float value;
    load_row(dtype, right.out, at, {&value, 1});
    const double far = value < expected.out[exact] ? -1 : 1;
    // In float32 the rounding errors of a sum of terms of either sign are many ulp of the sum.
    const double steps = dtype == HEADRACE_FLOAT32 ? 200 : 1;
    value += static_cast<float>(far * 2 * steps * half_ulp(dtype, std::abs(value)));
    Result wrong = right;
    store_row(dtype, wrong.out, at, {&value, 1});
    CHECK(mentions(defect(problem, expected, wrong), "out[1, 3, 17]"));

    const float nan = std::numeric_limits<float>::quiet_NaN();
    store_row(dtype, wrong.out, at, {&nan, 1});
    CHECK(mentions(defect(problem, expected, wrong), "out[1, 3, 17]"));

    wrong = right;
    const float lse = lse_value(problem, right, 1, 3) + 1e-5f;
    store_row(HEADRACE_FLOAT32, wrong.lse, problem.lse_rows.at(1, 3), {&lse, 1});
    CHECK(mentions(defect(problem, expected, wrong), "lse[1, 3, 0]"));
  }
}

TEST_CASE("checker: an empty request must be 0 and -inf") {
  ProblemSpec spec = checker_spec(HEADRACE_FLOAT32);
  spec.seq_lens = {0};
  const Problem problem = make_problem(spec);
  const Result right = run_problem(problem);
  CHECK(defect(problem, right) == "");
  Result wrong = right;
  const float tiny = 1e-30f;
  store_row(HEADRACE_FLOAT32, wrong.out, 4, {&tiny, 1});
  CHECK(mentions(defect(problem, wrong), "out[0, 0, 4]"));
  wrong = right;
  const float lowest = -3e38f;
  store_row(HEADRACE_FLOAT32, wrong.lse, 2, {&lowest, 1});
  CHECK(mentions(defect(problem, wrong), "lse[0, 2, 0]"));
}

TEST_CASE("checker: writes where nothing may be written") {
  ProblemSpec spec = checker_spec(HEADRACE_FLOAT32);
  spec.wide_rows = true;
  const Problem problem = make_problem(spec);
  const auto damage_after = [&](auto write) {
    const ProblemMemory memory(problem, kTestedDevice, Guards::kBytes, true);
    REQUIRE(memory.collect().damage == "");
    write(memory.args());
    return memory.collect().damage;
  };
  const auto zero = [](const void* address, std::ptrdiff_t offset) {
    static_cast<std::byte*>(const_cast<void*>(address))[offset] = std::byte{0};
  };
  const auto out_end = 4 * (problem.out_rows.num_elements - problem.out_rows.offset);

  CHECK(mentions(damage_after([&](const auto& args) { zero(args.out, out_end); }), "around out"));
  CHECK(mentions(damage_after([&](const auto& args) { zero(args.out, -4); }), "gap of out"));
  CHECK(mentions(damage_after([&](const auto& args) { zero(args.out, 4 * 128); }), "gap of out"));
  CHECK(mentions(damage_after([&](const auto& args) { zero(args.lse, 4); }), "gap of lse"));
  CHECK(mentions(damage_after([&](const auto& args) { zero(args.lse, -5); }), "around lse"));
  CHECK(mentions(damage_after([&](const auto& args) { zero(args.q, -1); }), "q"));
  CHECK(mentions(damage_after([&](const auto& args) { zero(args.k_cache, 1); }), "pool"));
  CHECK(mentions(damage_after([&](const auto& args) { zero(args.v_cache, -1); }), "pool"));
  CHECK(mentions(damage_after([&](const auto& args) { zero(args.block_table, -9); }), "table"));
  CHECK(mentions(damage_after([&](const auto& args) { zero(args.seq_lens, 0); }), "seq_lens"));
  CHECK(mentions(damage_after([&](const auto& args) { zero(args.k_scale, 8); }), "k_scale"));
  CHECK(mentions(damage_after([&](const auto& args) { zero(args.v_scale, 3); }), "v_scale"));
}

}  // namespace
}  // namespace headrace::tests
