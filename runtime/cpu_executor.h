// What only a CPU context has: worker threads, the layout of its workspace, its cost model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "host/planner.h"
#include "kernels/decode_params.h"
#include "runtime/description.h"
#include "runtime/worker_pool.h"
#include "scheduler/plan_layout.h"

namespace headrace::runtime {

class CpuExecutor {
 public:
  // A caller's workspace: partial slots, then the scratch memory of each worker. In bytes.
  struct Workspace {
    std::size_t scratch_offset;
    std::size_t worker_bytes;
    std::size_t total_bytes;
  };

  // num_workers 0: one per processor that this process may use. Throws when threads cannot start.
  explicit CpuExecutor(std::uint32_t num_workers);

  std::uint32_t num_workers() const { return pool_.num_workers(); }

  // E.g. "CPU, 8 threads, AVX2".
  std::string describe() const;

  // Neighbouring KV heads that one work item covers: a divisor of num_kv_heads. A plan for this
  // executor has num_kv_heads / kv_heads_per_item() heads.
  static std::int32_t kv_heads_per_item(const Description& desc);

  static host::CostModel cost_model(const Description& desc);

  Workspace workspace(const Description& desc, const scheduler::PlanCapacity& capacity) const;

  // Runs the whole plan and returns when the results are there. params.partials is not set yet.
  void run(kernels::DecodeParams params, const scheduler::PlanView& plan, const Workspace& layout,
           void* workspace);

 private:
  WorkerPool pool_;
};

}  // namespace headrace::runtime
