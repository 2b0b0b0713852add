// Runs plans written by hand on the CPU executor's workers, without the planner and the C ABI.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/plan_layout.h"
#include "scheduler/work_item.h"
#include "tests/support/problem.h"
#include "tests/support/problem_memory.h"

namespace headrace::tests {

struct HandPlan {
  scheduler::PlanHeader header{};
  std::vector<scheduler::WorkItem> items;
};

// A plan without items for `problem`, with shares that fall on multiples of tile_tokens. Each item
// is to cover kv_heads_per_item neighbouring KV heads.
HandPlan empty_plan(const Problem& problem, std::uint32_t tile_tokens,
                    std::int32_t kv_heads_per_item = 1);

// Adds a request's KV head (or as many as an item covers, counted in those), cut at `share_ends`
// (1/65536 of its tokens, ascending, the last one kWholeShare).
void add_head(HandPlan& plan, std::size_t request, std::int32_t kv_head,
              std::span<const std::uint32_t> share_ends);

// Runs the plan in num_workers threads and returns the result of every one of num_runs runs, all on
// the same plan and workspace, which nobody resets in between.
std::vector<Result> run_plan(const Problem& problem, const HandPlan& plan,
                             std::uint32_t num_workers, int num_runs, bool want_lse = true);

}  // namespace headrace::tests
