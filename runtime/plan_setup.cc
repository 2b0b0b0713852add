#include "runtime/plan_setup.h"

#include "runtime/argument_checks.h"
#include "runtime/status.h"

namespace headrace::runtime {
namespace {

// A multiple of every usual page size and of a GPU stage, small against the shortest split.
constexpr std::int32_t kTileTokens = 64;

static_assert(kBufferAlignment == scheduler::kPlanAlignment);

// Items are counted in 32 bits; this many take 4 GiB.
constexpr std::uint32_t kMaxItems = 1u << 28;

}  // namespace

headrace_status make_plan_setup(const headrace_context& context,
                                const headrace_attention_desc& desc,
                                const headrace_plan_options& options, PlanSetup& setup) {
  if (!(check_struct_size("options", options.struct_size, sizeof(options)) &&
        check_range("options.max_requests", options.max_requests, 1, scheduler::kMaxRequests) &&
        check_range("options.max_seq_len", options.max_seq_len, 1, INT32_MAX) &&
        check_range("options.invariant", options.invariant, 0, 1) &&
        check_range("options.check_plans", options.check_plans, 0, 1))) {
    return HEADRACE_INVALID_ARGUMENT;
  }
  const Executor& executor = *context.executor;
  headrace_status status = resolve_description(desc, options.max_requests, setup.desc);
  if (status == HEADRACE_OK) status = executor.check_description(setup.desc);
  if (status != HEADRACE_OK) return status;

  setup.planner = {
      .max_requests = static_cast<std::uint32_t>(options.max_requests),
      .num_kv_heads =
          static_cast<std::uint32_t>(desc.num_kv_heads / executor.kv_heads_per_item(setup.desc)),
      .num_workers = executor.num_workers(),
      .max_seq_len = options.max_seq_len,
      .tile_tokens = kTileTokens,
      .invariant = options.invariant == 1,
      .cost = executor.cost_model(setup.desc),
  };
  setup.check_plans = options.check_plans == 1;
  setup.capacity = host::plan_capacity(setup.planner);
  if (setup.capacity.max_items > kMaxItems) {
    return fail(HEADRACE_UNSUPPORTED,
                "options.max_requests {} with desc.num_kv_heads {} takes {} or more queue items; "
                "needed: at most {}",
                options.max_requests, desc.num_kv_heads, setup.capacity.max_items, kMaxItems);
  }
  setup.layout = scheduler::plan_layout(setup.capacity);
  setup.workspace_bytes = executor.workspace_bytes(setup.desc, setup.capacity);
  return HEADRACE_OK;
}

}  // namespace headrace::runtime
