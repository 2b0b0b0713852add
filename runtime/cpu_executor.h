// The CPU executor: persistent worker threads.
#pragma once

#include "runtime/executor.h"
#include "runtime/worker_pool.h"

namespace headrace::runtime {

class CpuExecutor final : public Executor {
 public:
  // num_workers 0: one per processor that this process may use. Throws when threads cannot start.
  explicit CpuExecutor(std::uint32_t num_workers);

  headrace_device device() const override { return HEADRACE_DEVICE_CPU; }
  std::uint32_t num_workers() const override { return pool_.num_workers(); }
  std::string describe() const override;
  headrace_status check_description(const Description&) const noexcept override {
    return HEADRACE_OK;  // it runs all that can be described
  }
  Alignments alignments(const Description& desc) const noexcept override;
  std::int32_t kv_heads_per_item(const Description& desc) const noexcept override;
  host::CostModel cost_model(const Description& desc) const noexcept override;
  std::size_t workspace_bytes(const Description& desc,
                              const scheduler::PlanCapacity& capacity) const noexcept override;
  headrace_status make_plan_buffer(void* buffer, const scheduler::PlanLayout& layout,
                                   const scheduler::PlanCapacity& capacity,
                                   std::unique_ptr<PlanBuffer>& plan_buffer) const override;
  headrace_status validate(const kernels::DecodeParams& params, void* stream) const override;
  // Returns when the results are there.
  headrace_status run(kernels::DecodeParams params, const PlanBuffer& plan,
                      const scheduler::PlanCapacity& capacity, void* workspace,
                      const Launch& launch) noexcept override;

 private:
  WorkerPool pool_;
};

}  // namespace headrace::runtime
