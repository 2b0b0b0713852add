// The plan handle: a description with its queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "host/planner.h"
#include "runtime/plan_setup.h"

struct headrace_plan {
 public:
  // `buffer` holds setup.layout.total_bytes, aligned; its control words are initialised here.
  headrace_plan(headrace_context& context, const headrace::runtime::PlanSetup& setup, void* buffer);

  headrace_status update(const std::int32_t* seq_lens, std::int32_t num_requests);
  headrace_status run(const headrace_run_args& args);
  std::string to_text() const;
  std::string to_json() const;

 private:
  void publish() noexcept;
  headrace_status check_run_args(const headrace_run_args& args) const noexcept;
  headrace::kernels::DecodeParams decode_params(const headrace_run_args& args) const noexcept;
  std::span<const headrace::scheduler::WorkItem> items() const;

  headrace_context& context_;
  headrace::runtime::PlanSetup setup_;
  headrace::host::Planner planner_;
  void* buffer_;

  // A plan is made here, and published to the buffer once it is known to be good.
  headrace::scheduler::PlanHeader staged_header_;
  std::vector<headrace::scheduler::WorkItem> staged_items_;  // [capacity.max_items]

  std::vector<std::int32_t>
      planned_lens_;  // one per planned request; never grows past max_requests
};
