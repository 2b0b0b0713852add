// Timelines: what they record, and that they change nothing.
#include <span>
#include <vector>

#include "tests/catch.h"
#include "tests/support/compare.h"
#include "tests/support/problem.h"
#include "tests/support/run_problem.h"
#include "tests/support/timeline.h"

namespace headrace::tests {
namespace {

TEST_CASE("decode: a timeline records every item of the rows run, and results stay the same") {
  for (const headrace_dtype kv_dtype : {HEADRACE_BFLOAT16, HEADRACE_FLOAT8_E4M3}) {
    for (const std::int32_t group : {1, 4, 20}) {  // 20: two passes of the CUDA executor
      ProblemSpec spec{.seq_lens = {9000, 0, 1, 16, 17, 300, 4096, 700}};
      spec.num_kv_heads = 2;
      spec.num_qo_heads = 2 * group;
      spec.kv_dtype = kv_dtype;
      const Problem problem = make_problem(spec);
      const Expected expected = solve(problem);
      for (const std::int32_t num_workers : {1, 3, many_workers()}) {
        const Device device(kTestedDevice, num_workers);
        TestPlan plan(device, problem.desc, 8, 9000);
        plan.update(problem.seq_lens);
        DeviceBuffer timeline(kTestedDevice, plan.max_items() * sizeof(headrace_timeline_record),
                              Guards::kBytes);
        for (const std::int32_t num_requests : {8, 3, 0}) {
          for (const int dependent : {0, 1}) {
            CAPTURE(kv_dtype, group, num_workers, num_requests, dependent);
            ProblemMemory memory(problem, kTestedDevice, Guards::kBytes, true);
            const auto run = [&](void* records) {
              memory.upload();
              require_ok(plan.try_run(memory, [&](headrace_run_args& args) {
                args.num_requests = num_requests;
                args.dependent_launch = dependent;
                args.timeline = static_cast<headrace_timeline_record*>(records);
              }));
              return memory.collect();
            };
            const Result without = run(nullptr);
            if (num_requests == 8) CHECK(defect(problem, expected, without) == "");

            const std::vector<headrace_timeline_record> untouched =
                untouched_timeline(plan.max_items());
            timeline.upload(std::as_bytes(std::span(untouched)));
            CHECK(run(timeline.data()) == without);
            CHECK(timeline.guards_intact());
            CHECK(timeline_defect(plan.to_json(), read_timeline(timeline), num_requests,
                                  num_workers) == "");
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace headrace::tests
