// One short run of every kernel instantiation, for compute-sanitizer: its tools slow kernels down a
// hundredfold. Three blocks, so that each has several items; splits, tails, empty requests; buffers
// of exactly their sizes.
#include "tests/catch.h"
#include "tests/support/compare.h"
#include "tests/support/problem.h"
#include "tests/support/run_problem.h"

namespace headrace::tests {
namespace {

TEST_CASE("gpu: every kernel, on buffers of exactly their sizes") {
  for (const headrace_dtype q_dtype : {HEADRACE_BFLOAT16, HEADRACE_FLOAT16}) {
    for (const headrace_dtype kv_dtype : {q_dtype, HEADRACE_FLOAT8_E4M3}) {
      // One pass of up to 8 heads, one of up to 16, and two passes.
      for (const std::int32_t group : {4, 12, 20}) {
        ProblemSpec spec{.seq_lens = {700, 0, 65, 1, 64, 333}};
        spec.num_kv_heads = 2;
        spec.num_qo_heads = 2 * group;
        spec.q_dtype = spec.out_dtype = q_dtype;
        spec.kv_dtype = kv_dtype;
        spec.scales = kv_dtype == HEADRACE_FLOAT8_E4M3;
        const Problem problem = make_problem(spec);
        const Expected expected = solve(problem);
        for (const bool invariant : {false, true}) {
          CAPTURE(q_dtype, kv_dtype, group, invariant);
          RunOptions options;
          options.num_workers = 3;
          options.guards = Guards::kNone;
          options.invariant = invariant;
          CHECK(defect(problem, expected, run_problem(problem, options)) == "");
        }
      }
    }
  }
}

// Two runs in a row, so that the second may start while the first still runs.
TEST_CASE("gpu: dependent runs with a timeline, on buffers of exactly their sizes") {
  ProblemSpec spec{.seq_lens = {700, 0, 65, 1, 64, 333}};
  spec.kv_dtype = HEADRACE_FLOAT8_E4M3;
  const Problem problem = make_problem(spec);
  const Device device(HEADRACE_DEVICE_CUDA, 3);
  TestPlan plan(device, problem.desc, 6, 700, false, Guards::kNone);
  plan.update(problem.seq_lens);
  const ProblemMemory memory(problem, device.kind(), Guards::kNone, true);
  const DeviceBuffer timeline(device.kind(), plan.max_items() * sizeof(headrace_timeline_record),
                              Guards::kNone);
  for (int run = 0; run < 2; ++run) {
    require_ok(plan.try_run(memory, [&](headrace_run_args& args) {
      args.dependent_launch = 1;
      args.fresh_tokens = 1;
      args.timeline = static_cast<headrace_timeline_record*>(timeline.data());
    }));
  }
  CHECK(defect(problem, memory.collect()) == "");
}

}  // namespace
}  // namespace headrace::tests
