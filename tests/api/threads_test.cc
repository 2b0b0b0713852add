// Plans and contexts of different threads do not disturb each other.
#include <thread>
#include <vector>

#include "tests/api/uniform_problem.h"
#include "tests/catch.h"

using namespace headrace;
using namespace headrace::tests;

namespace {

constexpr int kRuns = 100;

// Runs the plan again and again, updating in between. Returns how many results were not, bit for
// bit, those of the first run.
int count_differences(UniformProblem& problem, PreparedPlan& prepared) {
  prepared.plan.run(prepared.args(problem));
  const auto out = problem.out.memory();
  const auto lse = problem.lse.memory();
  int differences = problem.results_right() ? 0 : 1;
  for (int i = 0; i < kRuns; ++i) {
    problem.clear_results();
    if (i % 10 == 0) prepared.plan.update(problem.seq_lens);
    prepared.plan.run(prepared.args(problem));
    if (problem.out.memory() != out || problem.lse.memory() != lse) ++differences;
  }
  return differences;
}

int count_differences_in_two_threads(const Context& first, const Context& second) {
  UniformProblem problem_a({600, 3, 0, 41});
  UniformProblem problem_b({7, 900});
  PreparedPlan plan_a(first, problem_a);
  PreparedPlan plan_b(second, problem_b);
  int differences_b = 0;
  std::thread other([&] { differences_b = count_differences(problem_b, plan_b); });
  const int differences_a = count_differences(problem_a, plan_a);
  other.join();
  return differences_a + differences_b;
}

}  // namespace

TEST_CASE("two plans of one context in two threads") {
  const Context context(HEADRACE_DEVICE_CPU, 3);
  CHECK(count_differences_in_two_threads(context, context) == 0);
}

TEST_CASE("two contexts in two threads") {
  const Context first(HEADRACE_DEVICE_CPU, 2);
  const Context second(HEADRACE_DEVICE_CPU, 3);
  CHECK(count_differences_in_two_threads(first, second) == 0);
}

TEST_CASE("two plans take turns in one thread and share a workspace") {
  const Context context(HEADRACE_DEVICE_CPU, 2);
  UniformProblem large({2000, 50});
  UniformProblem small({3});
  PreparedPlan plan_large(context, large);
  PreparedPlan plan_small(context, small);
  headrace_run_args small_args = plan_large.args(small);
  for (int i = 0; i < kRuns; ++i) {
    large.clear_results();
    small.clear_results();
    plan_large.plan.run(plan_large.args(large));
    plan_small.plan.run(small_args);
    REQUIRE(large.results_right());
    REQUIRE(small.results_right());
  }
}
