// Lengths of every kind, and plans made for other lengths than those of the run.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tests/catch.h"
#include "tests/support/compare.h"
#include "tests/support/problem.h"
#include "tests/support/run_problem.h"

namespace headrace::tests {
namespace {

ProblemSpec small_spec(std::vector<std::int32_t> seq_lens, std::uint64_t seed = 1) {
  ProblemSpec spec{.seq_lens = std::move(seq_lens)};
  spec.head_dim = smallest_head_dim();
  spec.num_qo_heads = 4;
  spec.seed = seed;
  return spec;
}

TEST_CASE("decode: empty requests among others give 0 and -inf") {
  const Problem problem = make_problem(small_spec({0, 0, 5, 0, 1, 0, 4096, 0}));
  for (const std::int32_t num_workers : {1, 2, many_workers()}) {
    const Result result = run_problem(problem, {.num_workers = num_workers});
    CHECK(defect(problem, result) == "");
    CHECK(out_row(problem, result, 0, 3) ==
          std::vector<float>(static_cast<std::size_t>(problem.desc.head_dim), 0.0f));
    CHECK(lse_value(problem, result, 7, 0) == -std::numeric_limits<float>::infinity());
  }
}

TEST_CASE("decode: all requests empty") {
  for (const bool invariant : {false, true}) {
    const Problem problem = make_problem(small_spec({0, 0, 0}));
    CHECK(defect(problem, run_problem(problem, {.invariant = invariant})) == "");
  }
}

TEST_CASE("decode: no requests at all write nothing") {
  const Problem full = make_problem(small_spec({40, 7}));
  const Problem none = select_requests(full, {});
  const Device device(kTestedDevice, 2);
  TestPlan plan(device, full.desc, 2, 64);
  plan.update({});
  CHECK(plan.run(none).damage == "");

  // Rows of the tensors that are not asked for stay as they were.
  plan.update(full.seq_lens);
  const ProblemMemory memory(full, device.kind(), Guards::kBytes, true);
  const Result before = memory.collect();
  CHECK(plan.try_run(memory, [](headrace_run_args& args) { args.num_requests = 0; }) ==
        HEADRACE_OK);
  CHECK(memory.collect() == before);
}

TEST_CASE("decode: a plan serves any lengths") {
  const std::vector<std::vector<std::int32_t>> plans = {
      {2000, 1, 1, 1}, {16, 16, 16, 16}, {0, 0, 0, 0}, {1, 700, 0, 65}};
  const std::vector<std::vector<std::int32_t>> lives = {
      {1, 2000, 2000, 2000}, {17, 17, 17, 17}, {0, 0, 0, 0}, {1999, 0, 3, 64}, {2000, 5}, {0}};
  for (const bool invariant : {false, true}) {
    for (const std::int32_t num_workers : {1, 3, many_workers()}) {
      const Device device(kTestedDevice, num_workers);
      for (const auto& live : lives) {
        const Problem problem = make_problem(small_spec(live));
        const Expected expected = solve(problem);
        TestPlan plan(device, problem.desc, 4, 2000, invariant);
        for (const auto& planned : plans) {
          CAPTURE(invariant, num_workers, live, planned);
          plan.update(planned);
          CHECK(defect(problem, expected, plan.run(problem)) == "");
        }
      }
    }
  }
}

TEST_CASE("decode: rows that are not live are not written") {
  const Problem planned = make_problem(small_spec({600, 600, 600}));
  const Device device(kTestedDevice, 2);
  TestPlan plan(device, planned.desc, 3, 600);
  plan.update(planned.seq_lens);
  const ProblemMemory memory(planned, device.kind(), Guards::kBytes, true);
  REQUIRE(plan.try_run(memory, [](headrace_run_args& args) { args.num_requests = 2; }) ==
          HEADRACE_OK);
  const Result result = memory.collect();
  CHECK(result.damage == "");
  const std::vector<std::size_t> live = {0, 1};
  const Result right =
      run_problem(select_requests(planned, live), {.planned_lens = {600, 600, 600}});
  const auto head = [](const std::vector<std::byte>& bytes, std::size_t count) {
    return std::vector<std::byte>(bytes.begin(),
                                  bytes.begin() + static_cast<std::ptrdiff_t>(count));
  };
  CHECK(head(result.out, right.out.size()) == right.out);
  for (std::int32_t h = 0; h < planned.desc.num_qo_heads; ++h) {
    CHECK(std::isnan(lse_value(planned, result, 2, h)));
    CHECK(std::isnan(out_row(planned, result, 2, h)[0]));
  }
}

TEST_CASE("decode: a larger plan, then a smaller one, on the same workspace") {
  const Device device(kTestedDevice, 2);
  const Problem small = make_problem(small_spec({300, 17}));
  const Problem large = make_problem(small_spec({3000, 500, 0, 64, 900}));
  TestPlan small_plan(device, small.desc, 2, 300);
  TestPlan large_plan(device, large.desc, 5, 3000);
  small_plan.update(small.seq_lens);
  large_plan.update(large.seq_lens);
  const Result small_right = small_plan.run(small);
  const Result large_right = large_plan.run(large);
  CHECK(defect(small, small_right) == "");
  CHECK(defect(large, large_right) == "");

  DeviceBuffer workspace(device.kind(),
                         std::max(small_plan.workspace_bytes(), large_plan.workspace_bytes()),
                         Guards::kBytes);
  CHECK(small_plan.run(small, workspace) == small_right);
  CHECK(large_plan.run(large, workspace) == large_right);
  CHECK(small_plan.run(small, workspace) == small_right);
}

TEST_CASE("decode: one plan object for a larger batch, then a smaller one") {
  const Device device(kTestedDevice, 2);
  const Problem small = make_problem(small_spec({300, 17}));
  const Problem large = make_problem(small_spec({3000, 500, 0, 64, 900}));
  TestPlan plan(device, large.desc, 5, 3000);
  plan.update(small.seq_lens);
  const Result small_right = plan.run(small);
  plan.update(large.seq_lens);
  CHECK(defect(large, plan.run(large)) == "");
  plan.update(small.seq_lens);
  CHECK(plan.run(small) == small_right);
  CHECK(defect(small, small_right) == "");
}

TEST_CASE("decode: one plan for 80 layers") {
  const std::vector<std::int32_t> seq_lens = {700, 17, 64};
  const Device device(kTestedDevice, 2);
  TestPlan plan(device, make_problem(small_spec(seq_lens)).desc, 3, 700);
  plan.update(seq_lens);
  for (std::uint64_t layer = 0; layer < 80; ++layer) {
    CAPTURE(layer);
    const Problem problem = make_problem(small_spec(seq_lens, layer));
    CHECK(defect(problem, plan.run(problem)) == "");
  }
}

TEST_CASE("decode: a request of a million tokens among 255 short ones") {
  std::vector<std::int32_t> seq_lens(256, 128);
  seq_lens[100] = 1 << 20;
  ProblemSpec spec = small_spec(seq_lens);
  spec.num_qo_heads = spec.num_kv_heads = 1;
  spec.page_size = 64;
  spec.kv_dtype = HEADRACE_FLOAT8_E4M3;
  spec.out_dtype = widest_out_dtype();
  const Problem problem = make_problem(spec);
  CHECK(defect(problem, run_problem(problem)) == "");
}

}  // namespace
}  // namespace headrace::tests
