// How tensors lie in memory, and calls with other descriptions in turn.
#include <vector>

#include "tests/catch.h"
#include "tests/support/compare.h"
#include "tests/support/problem.h"
#include "tests/support/run_problem.h"

namespace headrace::tests {
namespace {

TEST_CASE("decode: pools apart, interleaved, sliced and padded; packed and wide rows") {
  for (const Pools pools : {Pools::kApart, Pools::kInterleaved, Pools::kSliced, Pools::kPadded}) {
    for (const headrace_layout layout : {HEADRACE_NHD, HEADRACE_HND}) {
      for (const bool wide_rows : {false, true}) {
        for (const std::int32_t page_size : {1, 8, 16, 24, 64, 100}) {
          CAPTURE(static_cast<int>(pools), layout, wide_rows, page_size);
          ProblemSpec spec{.seq_lens = {333, 16, 0, 100}};
          spec.pools = pools;
          spec.layout = layout;
          spec.wide_rows = wide_rows;
          spec.page_size = page_size;
          if (!supported(spec)) continue;
          const Problem problem = make_problem(spec);
          CHECK(defect(problem, run_problem(problem, {.num_workers = 3})) == "");
        }
      }
    }
  }
}

TEST_CASE("decode: pages shared by several requests") {
  ProblemSpec spec{.seq_lens = {200, 333, 7, 200, 160}};
  spec.shared_pages = 10;
  const Problem problem = make_problem(spec);
  REQUIRE(problem.block_table[0] ==
          problem.block_table[static_cast<std::size_t>(problem.block_table_stride)]);
  CHECK(defect(problem, run_problem(problem)) == "");
}

TEST_CASE("decode: calls of other types, layouts, scales and head counts in turn") {
  std::vector<ProblemSpec> specs(5, {.seq_lens = {700, 64, 3}});
  specs[1].kv_dtype = HEADRACE_FLOAT8_E4M3;
  specs[1].scales = true;
  specs[2].layout = HEADRACE_HND;
  specs[2].num_qo_heads = 12;
  specs[2].num_kv_heads = 4;
  specs[3].q_dtype = specs[3].kv_dtype = specs[3].out_dtype = HEADRACE_FLOAT32;
  specs[3].pools = Pools::kInterleaved;
  specs[3].num_kv_heads = 1;
  specs[3].head_dim = 192;
  specs[4].q_dtype = specs[4].kv_dtype = specs[4].out_dtype = HEADRACE_FLOAT16;
  specs[4].head_dim = 80;
  specs[4].sm_scale = -0.2f;
  specs.push_back(specs[4]);
  specs[5].head_dim = 128;
  specs[5].kv_dtype = HEADRACE_FLOAT8_E4M3;
  specs[5].num_qo_heads = 40;
  specs[5].page_size = 64;
  std::erase_if(specs, [](const ProblemSpec& spec) { return !supported(spec); });

  const Device device(kTestedDevice, 2);
  std::vector<Result> first;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < specs.size(); ++i) {
      CAPTURE(round, i);
      const Problem problem = make_problem(specs[i]);
      TestPlan plan(device, problem.desc, 3, 700);
      plan.update(problem.seq_lens);
      const Result result = plan.run(problem);
      if (round == 0) {
        CHECK(defect(problem, result) == "");
        first.push_back(result);
      } else {
        CHECK(result == first[i]);
      }
    }
  }
}

}  // namespace
}  // namespace headrace::tests
