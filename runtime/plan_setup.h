// Everything about a plan that follows from its description and options: a function of capacities
// and shapes, never of lengths.
#pragma once

#include "host/planner.h"
#include "runtime/context.h"
#include "runtime/description.h"
#include "scheduler/plan_layout.h"

namespace headrace::runtime {

struct PlanSetup {
  Description desc;
  host::PlannerConfig planner;
  bool check_plans;
  scheduler::PlanCapacity capacity;
  scheduler::PlanLayout layout;  // of the plan buffer
  std::size_t workspace_bytes;
};

// Checks both structs and fills `setup`. Errors: INVALID_ARGUMENT, UNSUPPORTED.
headrace_status make_plan_setup(const headrace_context& context,
                                const headrace_attention_desc& desc,
                                const headrace_plan_options& options, PlanSetup& setup);

}  // namespace headrace::runtime
