// A plan as text: a summary and table for people, JSON for programs.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "scheduler/plan_layout.h"
#include "scheduler/work_item.h"

namespace headrace::host {

// `seq_lens` are the lengths to show token ranges for; one per planned request.
std::string plan_to_text(const scheduler::PlanHeader& header,
                         std::span<const scheduler::WorkItem> items,
                         std::span<const std::int32_t> seq_lens);
std::string plan_to_json(const scheduler::PlanHeader& header,
                         std::span<const scheduler::WorkItem> items,
                         std::span<const std::int32_t> seq_lens);

}  // namespace headrace::host
