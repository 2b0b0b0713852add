// What runs plans on one kind of device. The rest of the runtime is the same for all kinds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "host/planner.h"
#include "kernels/decode_params.h"
#include "runtime/description.h"
#include "scheduler/plan_layout.h"

namespace headrace::runtime {

// The caller's buffer of one plan, in the memory of the device.
class PlanBuffer {
 public:
  virtual ~PlanBuffer() = default;

  // Makes this the plan that later runs on `stream` find in the buffer. Allocates nothing.
  virtual headrace_status publish(const scheduler::PlanHeader& header,
                                  std::span<const scheduler::WorkItem> items,
                                  void* stream) noexcept = 0;

  // The plan as the device's workers see it: pointers of the device.
  virtual scheduler::PlanView view() const noexcept = 0;
};

// How a run takes its place among the other work of the device.
struct Launch {
  void* stream;
  bool dependent;             // may start while the kernel before it still runs
  std::int32_t fresh_tokens;  // with it: that kernel may still write so many tokens at the end of
                              // each request; below 0: any token, length or table entry
};

class Executor {
 public:
  // What pointers of a run must be multiples of, in bytes.
  struct Alignments {
    std::size_t q;
    std::size_t cache;
    std::size_t out;
  };

  virtual ~Executor() = default;

  virtual headrace_device device() const = 0;
  virtual std::uint32_t num_workers() const = 0;

  // E.g. "CPU, 8 threads, AVX2".
  virtual std::string describe() const = 0;

  // Whether this device can run the description. Errors: UNSUPPORTED, INVALID_ARGUMENT.
  virtual headrace_status check_description(const Description& desc) const noexcept = 0;
  virtual Alignments alignments(const Description& desc) const noexcept = 0;

  // Neighbouring KV heads that one work item covers: a divisor of num_kv_heads. A plan for this
  // executor has num_kv_heads / kv_heads_per_item() heads.
  virtual std::int32_t kv_heads_per_item(const Description& desc) const noexcept = 0;

  virtual host::CostModel cost_model(const Description& desc) const noexcept = 0;

  virtual std::size_t workspace_bytes(const Description& desc,
                                      const scheduler::PlanCapacity& capacity) const noexcept = 0;

  // Takes over `buffer` for one plan: initialises its control words, and an empty plan.
  virtual headrace_status make_plan_buffer(void* buffer, const scheduler::PlanLayout& layout,
                                           const scheduler::PlanCapacity& capacity,
                                           std::unique_ptr<PlanBuffer>& plan_buffer) const = 0;

  // Checks lengths and page tables of a run before it. Errors: INVALID_DATA, names the first bad
  // entry. A debugging aid: it may allocate, and wait for the stream.
  virtual headrace_status validate(const kernels::DecodeParams& params, void* stream) const = 0;

  // Runs the whole plan. params.partials is not set yet. Allocates nothing.
  virtual headrace_status run(kernels::DecodeParams params, const PlanBuffer& plan,
                              const scheduler::PlanCapacity& capacity, void* workspace,
                              const Launch& launch) noexcept = 0;
};

}  // namespace headrace::runtime
