// A run captured in a CUDA graph, and replayed when everything but sizes has changed.
#include "tests/gpu/graph.h"

#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/gpu/stream.h"
#include "tests/support/compare.h"
#include "tests/support/problem.h"
#include "tests/support/run_problem.h"

namespace headrace::tests {
namespace {

constexpr std::int32_t kLongest = 2000;

// Five requests with room for kLongest tokens each, whatever their lengths.
ProblemSpec roomy_spec(std::vector<std::int32_t> seq_lens, std::uint64_t seed) {
  ProblemSpec spec{.seq_lens = std::move(seq_lens)};
  spec.num_qo_heads = 28;
  spec.num_kv_heads = 4;
  spec.room = kLongest;
  spec.seed = seed;
  return spec;
}

TEST_CASE("gpu: a captured run replayed with other lengths, tables and queries, and plans") {
  const std::vector<std::vector<std::int32_t>> lives = {
      {kLongest, 1, 1, 1, 1}, {1, kLongest, kLongest, kLongest, kLongest},
      {16, 16, 16, 16, 16},   {17, 17, 17, 17, 17},
      {700, 64, 0, 0, 0},  // fewer live rows than captured
      {0, 0, 0, 0, 0},        {63, 1999, 65, 0, 128}};
  for (const headrace_dtype kv_dtype : {HEADRACE_BFLOAT16, HEADRACE_FLOAT8_E4M3}) {
    const Device device(HEADRACE_DEVICE_CUDA, 0);
    const Stream stream;
    const auto make = [kv_dtype](const std::vector<std::int32_t>& lens, std::uint64_t seed) {
      ProblemSpec spec = roomy_spec(lens, seed);
      spec.kv_dtype = kv_dtype;
      return make_problem(spec);
    };
    Problem problem = make(lives[0], 0);
    ProblemMemory memory(problem, device.kind(), Guards::kBytes, true);
    TestPlan plan(device, problem.desc, 5, kLongest);
    plan.update(lives[0], stream.get());
    const auto run = [&] {
      return plan.try_run(memory,
                          [&stream](headrace_run_args& args) { args.stream = stream.get(); });
    };
    const Graph graph(stream, run);

    for (const bool plan_anew : {false, true}) {
      std::uint64_t seed = 0;
      for (const std::vector<std::int32_t>& lens : lives) {
        CAPTURE(kv_dtype, plan_anew, lens);
        problem = make(lens, ++seed);
        memory.upload();
        if (plan_anew) plan.update(lens, stream.get());
        graph.launch(stream);
        stream.wait();
        const Result replayed = memory.collect();
        CHECK(defect(problem, replayed) == "");

        memory.upload();
        require_ok(run());
        stream.wait();
        CHECK(memory.collect() == replayed);
      }
    }
  }
}

}  // namespace
}  // namespace headrace::tests
