// Runs problems through the public C ABI on any kind of device.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headrace/headrace.h"
#include "tests/support/device_buffer.h"
#include "tests/support/problem.h"
#include "tests/support/problem_memory.h"
#include "tests/support/tested_device.h"

namespace headrace::tests {

struct RunOptions {
  headrace_device device = kTestedDevice;
  std::int32_t num_workers = 2;
  bool invariant = false;
  bool want_lse = true;
  std::vector<std::int32_t> planned_lens = {};  // empty: the problem's own
  std::int32_t max_seq_len = 0;                 // 0: the longest of those planned
  Guards guards = Guards::kBytes;
};

class Device {
 public:
  Device(headrace_device kind, std::int32_t num_workers);

  headrace_device kind() const { return kind_; }
  headrace_context* context() const { return context_.get(); }

 private:
  struct Destroy {
    void operator()(headrace_context* context) const { headrace_context_destroy(context); }
  };
  headrace_device kind_;
  std::unique_ptr<headrace_context, Destroy> context_;
};

// Throws std::runtime_error with the library's message unless `status` is HEADRACE_OK.
void require_ok(headrace_status status);

// A plan that proves every update, with guarded buffers of exactly the sizes asked for.
class TestPlan {
 public:
  TestPlan(const Device& device, const headrace_attention_desc& desc, std::int32_t max_requests,
           std::int32_t max_seq_len, bool invariant = false, Guards guards = Guards::kBytes);

  void update(std::span<const std::int32_t> seq_lens, void* stream = nullptr);
  std::size_t workspace_bytes() const { return sizes_.workspace_bytes; }
  std::size_t max_items() const { return sizes_.max_items; }
  // The plan's description.
  std::string to_json() const;

  // Runs on the plan's own workspace, which is full of 0xFF, or on another.
  Result run(const Problem& problem, bool want_lse = true);
  Result run(const Problem& problem, DeviceBuffer& workspace, bool want_lse = true);

  // The same without throwing, for runs that are to fail. `change` gets the arguments last.
  template <typename Change>
  headrace_status try_run(const ProblemMemory& memory, const Change& change) {
    headrace_run_args args = run_args(memory, workspace_);
    change(args);
    return headrace_run(plan_.get(), &args);
  }

 private:
  headrace_run_args run_args(const ProblemMemory& memory, const DeviceBuffer& workspace) const;

  struct Destroy {
    void operator()(headrace_plan* plan) const { headrace_plan_destroy(plan); }
  };
  headrace_device device_;
  Guards guards_;
  headrace_plan_sizes sizes_;
  DeviceBuffer buffer_;
  DeviceBuffer workspace_;
  std::unique_ptr<headrace_plan, Destroy> plan_;
};

// Everything new: context, plan, buffers.
Result run_problem(const Problem& problem, const RunOptions& options = {});

}  // namespace headrace::tests
