// The C++ header: ownership, errors, spans.
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/headrace.hpp"
#include "tests/api/uniform_problem.h"
#include "tests/catch.h"

using namespace headrace;
using namespace headrace::tests;

static_assert(!std::is_copy_constructible_v<Context> && !std::is_copy_assignable_v<Context>);
static_assert(!std::is_copy_constructible_v<Plan> && !std::is_copy_assignable_v<Plan>);
static_assert(!std::is_copy_constructible_v<HostBuffer>);
static_assert(std::is_nothrow_move_constructible_v<Context> &&
              std::is_nothrow_move_assignable_v<Context>);
static_assert(std::is_nothrow_move_constructible_v<Plan> &&
              std::is_nothrow_move_assignable_v<Plan>);
static_assert(std::is_nothrow_move_constructible_v<HostBuffer>);

TEST_CASE("a failure is an Error with status and message") {
  try {
    const Context context(HEADRACE_DEVICE_CPU, -1);
    FAIL("no exception");
  } catch (const Error& error) {
    CHECK(error.status() == HEADRACE_INVALID_ARGUMENT);
    CHECK(std::string(error.what()).find("options.num_workers is -1") != std::string::npos);
  }
}

TEST_CASE("handles and buffers move") {
  UniformProblem problem({5, 700, 3});
  Context context(HEADRACE_DEVICE_CPU, 2);
  Context moved_context = std::move(context);
  CHECK(context.get() == nullptr);

  const headrace_plan_sizes sizes = moved_context.plan_sizes(problem.desc(), problem.options());
  HostBuffer buffer(sizes.plan_bytes, sizes.alignment);
  HostBuffer workspace(1, sizes.alignment);
  workspace = HostBuffer(sizes.workspace_bytes, sizes.alignment);
  Plan plan(moved_context, problem.desc(), problem.options(), buffer.span());
  HostBuffer moved_buffer = std::move(buffer);  // the memory stays where it is
  Plan moved_plan = std::move(plan);
  CHECK(plan.get() == nullptr);

  headrace_run_args args = problem.args();
  args.workspace = workspace.span().data();
  args.workspace_bytes = workspace.span().size();
  moved_plan.update(problem.seq_lens);
  moved_plan.run(args);
  CHECK(problem.results_right());
}

TEST_CASE("builders give the C defaults with the given fields") {
  const headrace_attention_desc desc = attention_desc(8, 2, 64, 0.5f);
  CHECK(desc.struct_size == sizeof(desc));
  CHECK(desc.num_qo_heads == 8);
  CHECK(desc.num_kv_heads == 2);
  CHECK(desc.head_dim == 64);
  CHECK(desc.sm_scale == 0.5f);
  CHECK(desc.page_size == headrace_attention_desc_default().page_size);
  const headrace_plan_options options = plan_options(7, 99);
  CHECK(options.struct_size == sizeof(options));
  CHECK(options.max_requests == 7);
  CHECK(options.max_seq_len == 99);
}

TEST_CASE("describe gives text and JSON") {
  const Context context(HEADRACE_DEVICE_CPU, 2);
  UniformProblem problem({5, 700, 3});
  PreparedPlan prepared(context, problem);
  const std::string text = prepared.plan.describe();
  const std::string json = prepared.plan.describe(HEADRACE_PLAN_JSON);
  CHECK(text.find('\0') == std::string::npos);
  CHECK(json.front() == '{');
  CHECK(json.find('\0') == std::string::npos);
  CHECK(text != json);
}
