// Random problems of every kind. HEADRACE_SEED=n in the environment tries others.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/catch.h"
#include "tests/support/compare.h"
#include "tests/support/problem.h"
#include "tests/support/random_problem.h"
#include "tests/support/run_problem.h"

namespace headrace::tests {
namespace {

constexpr int kNumProblems = 200;

TEST_CASE("decode: random problems") {
  const char* chosen = std::getenv("HEADRACE_SEED");
  const std::uint64_t first_seed = chosen != nullptr ? std::stoull(chosen) : 1;
  std::printf("sweep: seeds %llu to %llu\n", static_cast<unsigned long long>(first_seed),
              static_cast<unsigned long long>(first_seed + kNumProblems - 1));
  for (std::uint64_t seed = first_seed; seed < first_seed + kNumProblems; ++seed) {
    Random random(seed);
    const ProblemSpec spec = random_spec(random, seed);
    const RunOptions options = random_options(random, spec);
    CAPTURE(seed, spec.num_qo_heads, spec.num_kv_heads, spec.head_dim, spec.page_size, spec.q_dtype,
            spec.kv_dtype, spec.out_dtype, spec.seq_lens, options.planned_lens, options.num_workers,
            options.invariant, options.max_seq_len);
    const Problem problem = make_problem(spec);
    CHECK(defect(problem, run_problem(problem, options)) == "");
  }
}

}  // namespace
}  // namespace headrace::tests
