#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/api/expect_error.h"
#include "tests/api/raw_enums.h"
#include "tests/api/uniform_problem.h"
#include "tests/catch.h"

using namespace headrace;
using namespace headrace::tests;

TEST_CASE("results are right for any number of workers") {
  for (const int num_workers : {1, 2, 3, 8}) {
    INFO("workers: " << num_workers);
    const Context context(HEADRACE_DEVICE_CPU, num_workers);
    UniformProblem problem({0, 1, 3, 4, 5, 2000, 63, 64, 65, 0});
    PreparedPlan prepared(context, problem);
    prepared.plan.run(prepared.args(problem));
    CHECK(problem.results_right());
    CHECK(prepared.workspace.guards_intact());
    CHECK(prepared.buffer.guards_intact());
  }
}

TEST_CASE("one plan runs again and again, for changing lengths, without an update") {
  const Context context(HEADRACE_DEVICE_CPU, 3);
  UniformProblem planned({700, 1, 1, 30});
  PreparedPlan prepared(context, planned);
  for (const std::vector<std::int32_t>& lens : std::vector<std::vector<std::int32_t>>{
           {700, 1, 1, 30}, {1, 700, 700, 700}, {0, 0, 0, 0}, {5, 2000, 0, 64}, {700, 1, 1, 30}}) {
    UniformProblem problem(lens);
    headrace_run_args args = prepared.args(problem);
    prepared.plan.run(args);
    CHECK(problem.results_right());
  }
}

TEST_CASE("LSE may be left out") {
  const Context context(HEADRACE_DEVICE_CPU, 2);
  UniformProblem problem({900, 2});
  PreparedPlan prepared(context, problem);
  headrace_run_args args = prepared.args(problem);
  prepared.plan.run(args);
  const auto with_lse = problem.out.memory();
  problem.clear_results();
  args.lse = nullptr;
  const auto lse_before = problem.lse.memory();
  prepared.plan.run(args);
  CHECK(problem.out.memory() == with_lse);
  CHECK(problem.lse.memory() == lse_before);
}

TEST_CASE("dependent launch does nothing on a CPU") {
  const Context context(HEADRACE_DEVICE_CPU, 3);
  UniformProblem problem({900, 0, 2, 3000});
  PreparedPlan prepared(context, problem);
  headrace_run_args args = prepared.args(problem);
  prepared.plan.run(args);
  const auto without = problem.out.memory();
  for (const std::int32_t fresh_tokens : {-1, 0, 1}) {
    CAPTURE(fresh_tokens);
    problem.clear_results();
    args.dependent_launch = 1;
    args.fresh_tokens = fresh_tokens;
    prepared.plan.run(args);
    CHECK(problem.out.memory() == without);
    CHECK(problem.results_right());
  }
}

TEST_CASE("fewer rows than planned compute those rows and leave the others alone") {
  const Context context(HEADRACE_DEVICE_CPU, 2);
  UniformProblem problem({300, 20, 400});
  PreparedPlan prepared(context, problem);
  headrace_run_args args = prepared.args(problem);
  args.num_requests = 1;
  const std::vector<std::byte> before = problem.out.memory();
  prepared.plan.run(args);

  const std::size_t row = UniformProblem::kQoHeads * UniformProblem::kHeadDim;
  CHECK(std::abs(problem.out.as<float>()[0] - 149.5f) < 1e-3f);
  const auto rest = problem.out.as<float>().subspan(row);
  CHECK(std::all_of(rest.begin(), rest.end(), [](float value) { return value != value; }));

  args.num_requests = 3;
  prepared.plan.run(args);
  CHECK(problem.results_right());
}

TEST_CASE("a plan never updated covers no requests") {
  const Context context(HEADRACE_DEVICE_CPU, 1);
  UniformProblem problem({5, 9, 3});
  PreparedPlan prepared(context, problem);
  GuardedBuffer buffer(prepared.sizes.plan_bytes);
  Plan fresh(context, problem.desc(), problem.options(), buffer.span());
  const headrace_run_args args = prepared.args(problem);
  expect_error(headrace_run(fresh.get(), &args), HEADRACE_OUT_OF_CAPACITY,
               {"args.num_requests is 3", "at most 0"});
}

TEST_CASE("a refused update leaves the old plan in force") {
  const Context context(HEADRACE_DEVICE_CPU, 2);
  UniformProblem problem({5, 900, 3});
  PreparedPlan prepared(context, problem);
  const std::string described = prepared.plan.describe();
  const auto before = prepared.buffer.memory();
  headrace_plan* const plan = prepared.plan.get();
  const std::vector<std::int32_t> four = {1, 2, 3, 4};
  const std::vector<std::int32_t> negative = {1, 2, -3};

  expect_error(headrace_plan_update(nullptr, four.data(), 3, nullptr), HEADRACE_INVALID_ARGUMENT,
               {"plan is null"});
  expect_error(headrace_plan_update(plan, nullptr, 3, nullptr), HEADRACE_INVALID_ARGUMENT,
               {"seq_lens is null"});
  expect_error(headrace_plan_update(plan,
                                    reinterpret_cast<const std::int32_t*>(
                                        reinterpret_cast<const char*>(four.data()) + 1),
                                    3, nullptr),
               HEADRACE_INVALID_ARGUMENT, {"seq_lens is 0x", "multiple of 4"});
  expect_error(headrace_plan_update(plan, four.data(), -1, nullptr), HEADRACE_INVALID_ARGUMENT,
               {"num_requests is -1", "0 to"});
  expect_error(headrace_plan_update(plan, four.data(), 4, nullptr), HEADRACE_OUT_OF_CAPACITY,
               {"num_requests is 4", "at most 3"});
  expect_error(headrace_plan_update(plan, negative.data(), 3, nullptr), HEADRACE_INVALID_DATA,
               {"seq_lens[2] is -3", "0 or more"});

  CHECK(prepared.buffer.memory() == before);
  CHECK(prepared.plan.describe() == described);
  prepared.plan.run(prepared.args(problem));
  CHECK(problem.results_right());
}

TEST_CASE("an update to no requests is a plan of no requests") {
  const Context context(HEADRACE_DEVICE_CPU, 2);
  UniformProblem problem({5, 9, 3});
  PreparedPlan prepared(context, problem);
  prepared.plan.update({});
  const headrace_run_args args = prepared.args(problem);
  expect_error(headrace_run(prepared.plan.get(), &args), HEADRACE_OUT_OF_CAPACITY, {"at most 0"});
}

TEST_CASE("check_plans proves every plan, invariant ones too") {
  const Context context(HEADRACE_DEVICE_CPU, 4);
  UniformProblem problem({0, 1, 70, 3000, 64});
  for (const int invariant : {0, 1}) {
    headrace_plan_options options = problem.options();
    options.check_plans = 1;
    options.invariant = invariant;
    const headrace_plan_sizes sizes = context.plan_sizes(problem.desc(), options);
    GuardedBuffer buffer(sizes.plan_bytes);
    GuardedBuffer workspace(sizes.workspace_bytes);
    Plan plan(context, problem.desc(), options, buffer.span());
    plan.update(problem.seq_lens);
    headrace_run_args args = problem.args();
    args.workspace = workspace.data();
    args.workspace_bytes = sizes.workspace_bytes;
    problem.clear_results();
    plan.run(args);
    CHECK(problem.results_right());
    CHECK(workspace.guards_intact());
    CHECK(buffer.guards_intact());
  }
}

TEST_CASE("sizes depend on capacities alone, and are the same when asked again") {
  const Context context(HEADRACE_DEVICE_CPU, 2);
  const UniformProblem problem({5, 9, 3});
  const headrace_plan_sizes once = context.plan_sizes(problem.desc(), problem.options());
  const headrace_plan_sizes again = context.plan_sizes(problem.desc(), problem.options());
  CHECK(once.plan_bytes == again.plan_bytes);
  CHECK(once.workspace_bytes == again.workspace_bytes);
  CHECK(once.alignment == 128);

  headrace_plan_options larger = problem.options();
  larger.max_requests = 100;
  CHECK(context.plan_sizes(problem.desc(), larger).plan_bytes > once.plan_bytes);

  const Context more_workers(HEADRACE_DEVICE_CPU, 4);
  CHECK(more_workers.plan_sizes(problem.desc(), problem.options()).workspace_bytes >
        once.workspace_bytes);
}

TEST_CASE("the largest description allowed has sizes, or says why not") {
  const Context context(HEADRACE_DEVICE_CPU, 2);
  headrace_attention_desc desc = attention_desc(65536 * 64, 65536, 256, 1.0f);
  headrace_plan_options options = plan_options(65536, INT32_MAX);
  for (const int invariant : {0, 1}) {
    options.invariant = invariant;
    headrace_plan_sizes sizes{};
    sizes.struct_size = sizeof(sizes);
    expect_error(headrace_plan_get_sizes(context.get(), &desc, &options, &sizes),
                 HEADRACE_UNSUPPORTED,
                 {"options.max_requests 65536 with desc.num_kv_heads 65536", "at most 268435456"});
  }
}

TEST_CASE("a description follows the two-call protocol") {
  const Context context(HEADRACE_DEVICE_CPU, 2);
  UniformProblem problem({5, 900, 3});
  PreparedPlan prepared(context, problem);
  headrace_plan* const plan = prepared.plan.get();

  for (const headrace_plan_format format : {HEADRACE_PLAN_TEXT, HEADRACE_PLAN_JSON}) {
    std::size_t needed = 0;
    REQUIRE(headrace_plan_describe(plan, format, nullptr, &needed) == HEADRACE_OK);
    REQUIRE(needed > 1);

    std::string text(needed + 1, '#');
    std::size_t given = needed - 1;
    expect_error(
        headrace_plan_describe(plan, format, text.data(), &given), HEADRACE_BUFFER_TOO_SMALL,
        {"*text_bytes is " + std::to_string(needed - 1), "at least " + std::to_string(needed)});
    CHECK(given == needed);
    CHECK(text == std::string(needed + 1, '#'));

    given = needed;
    REQUIRE(headrace_plan_describe(plan, format, text.data(), &given) == HEADRACE_OK);
    CHECK(given == needed);
    CHECK(text[needed] == '#');
    CHECK(std::strlen(text.c_str()) == needed - 1);
  }

  std::size_t bytes = 0;
  expect_error(headrace_plan_describe(nullptr, HEADRACE_PLAN_TEXT, nullptr, &bytes),
               HEADRACE_INVALID_ARGUMENT, {"plan is null"});
  expect_error(headrace_plan_describe(plan, HEADRACE_PLAN_TEXT, nullptr, nullptr),
               HEADRACE_INVALID_ARGUMENT, {"text_bytes is null"});
  expect_error(describe_with_format(plan, 2, nullptr, &bytes), HEADRACE_INVALID_ARGUMENT,
               {"format is 2", "0 to 1"});
  CHECK(bytes == 0);
}
