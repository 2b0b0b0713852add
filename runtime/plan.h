// The plan handle: a description with its queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "host/planner.h"
#include "runtime/plan_setup.h"

struct headrace_plan {
 public:
  // A plan of no requests. `buffer` was made for setup.layout.
  headrace_plan(headrace_context& context, const headrace::runtime::PlanSetup& setup,
                std::unique_ptr<headrace::runtime::PlanBuffer> buffer);

  headrace_status update(const std::int32_t* seq_lens, std::int32_t num_requests, void* stream);
  headrace_status run(const headrace_run_args& args);
  std::string to_text() const;
  std::string to_json() const;

 private:
  headrace_status check_run_args(const headrace_run_args& args) const noexcept;
  headrace::kernels::DecodeParams decode_params(const headrace_run_args& args) const noexcept;
  std::span<const headrace::scheduler::WorkItem> items() const;

  headrace_context& context_;
  headrace::runtime::PlanSetup setup_;
  headrace::host::Planner planner_;
  std::unique_ptr<headrace::runtime::PlanBuffer> buffer_;

  // A plan is made here, and published to the buffer once it is known to be good.
  headrace::scheduler::PlanHeader staged_header_;
  std::vector<headrace::scheduler::WorkItem> staged_items_;  // [capacity.max_items]

  std::vector<std::int32_t>
      planned_lens_;  // one per planned request; never grows past max_requests
};
