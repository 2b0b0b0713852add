// Workers that pull items from a queue, by the planner's own cost model.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "host/planner.h"
#include "scheduler/work_item.h"

namespace headrace::tests {

// When the last worker ends, in microseconds. Worker w takes slowness[w] times as long as the cost
// model says; there are as many workers as slowness has entries.
double simulate_us(std::span<const scheduler::WorkItem> items,
                   std::span<const std::int32_t> seq_lens, const host::PlannerConfig& config,
                   std::span<const double> slowness);

// What every worker would have to do if the work could be spread evenly without cutting anything:
// all tokens, and one item per request and KV head.
double ideal_us(std::span<const std::int32_t> seq_lens, const host::PlannerConfig& config);

}  // namespace headrace::tests
