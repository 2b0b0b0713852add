// Proves a plan: used by tests, and by the runtime's validation mode.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "scheduler/plan_layout.h"
#include "scheduler/work_item.h"

namespace headrace::host {

// Returns an empty string when every token of every request and KV head is covered exactly once for
// `seq_lens` (the planned lengths or any others) and the shares leave no gap for other lengths, the
// splits of each request and KV head are numbered in token order and agree on count and first slot,
// no slot is used twice, all indices are within bounds and capacity. Otherwise names the first
// thing that is wrong.
std::string check_plan(const scheduler::PlanHeader& header,
                       std::span<const scheduler::WorkItem> items,
                       const scheduler::PlanCapacity& capacity,
                       std::span<const std::int32_t> seq_lens);

}  // namespace headrace::host
