#include "runtime/plan_setup.h"

#include <algorithm>

#include "runtime/argument_checks.h"
#include "runtime/status.h"
#include "scheduler/work_item.h"

namespace headrace::runtime {
namespace {

// CPU tiles: a multiple of every usual page size, small against the shortest split.
constexpr std::int32_t kTileTokens = 64;

static_assert(kBufferAlignment == scheduler::kPlanAlignment);

// Items are counted in 32 bits; this many take 4 GiB.
constexpr std::int64_t kMaxItems = std::int64_t{1} << 28;

// Errors: UNSUPPORTED.
headrace_status check_item_count(const host::PlannerConfig& config) noexcept {
  const std::int64_t rows = std::int64_t{config.max_requests} * config.num_kv_heads;
  // The invariant mode may split every request as finely as it could be split alone.
  const std::int64_t splits =
      config.invariant
          ? std::min<std::int64_t>(scheduler::kMaxSplits,
                                   config.max_seq_len / config.cost.min_split_tokens + 1)
          : 1;
  if (rows * splits <= kMaxItems) return HEADRACE_OK;
  return fail(
      HEADRACE_UNSUPPORTED,
      "options.max_requests * desc.num_kv_heads is {}, each split up to {} times, {} items; "
      "needed: at most {}",
      rows, splits, rows * splits, kMaxItems);
}

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
  headrace_status status = resolve_description(desc, options.max_requests, setup.desc);
  if (status != HEADRACE_OK) return status;

  setup.planner = {
      .max_requests = static_cast<std::uint32_t>(options.max_requests),
      .num_kv_heads = static_cast<std::uint32_t>(desc.num_kv_heads),
      .num_workers = context.cpu->num_workers(),
      .max_seq_len = options.max_seq_len,
      .tile_tokens = kTileTokens,
      .invariant = options.invariant == 1,
      .cost = CpuExecutor::cost_model(setup.desc),
  };
  status = check_item_count(setup.planner);
  if (status != HEADRACE_OK) return status;
  setup.check_plans = options.check_plans == 1;
  setup.capacity = host::plan_capacity(setup.planner);
  setup.layout = scheduler::plan_layout(setup.capacity);
  setup.workspace = context.cpu->workspace(setup.desc, setup.capacity);
  return HEADRACE_OK;
}

}  // namespace headrace::runtime
