#include "runtime/cpu_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "kernels/cpu/decode.h"

namespace headrace::runtime {

CpuExecutor::CpuExecutor(std::uint32_t num_workers)
    : pool_(num_workers != 0 ? num_workers : std::max(1u, std::thread::hardware_concurrency())) {}

std::string CpuExecutor::describe() const {
  return fmt::format("CPU, {} thread{}, {}", num_workers(), num_workers() == 1 ? "" : "s",
                     cpu::simd_target());
}

CpuExecutor::Workspace CpuExecutor::workspace(const Description& desc,
                                              const scheduler::PlanCapacity& capacity) const {
  const std::size_t partial_bytes =
      capacity.max_partials * sizeof(float) *
      kernels::partial_floats(static_cast<std::size_t>(desc.group),
                              static_cast<std::size_t>(desc.head_dim));
  const std::size_t scratch_offset =
      (partial_bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  return {scratch_offset,
          scratch_offset + num_workers() * cpu::worker_scratch_bytes(desc.group, desc.head_dim)};
}

void CpuExecutor::run(kernels::DecodeParams params, const scheduler::PlanView& plan,
                      const Workspace& layout, void* workspace) {
  auto* bytes = static_cast<std::byte*>(workspace);
  params.partials = reinterpret_cast<float*>(bytes);
  std::byte* const scratch = bytes + layout.scratch_offset;
  const std::size_t scratch_bytes =
      cpu::worker_scratch_bytes(params.num_qo_heads / params.num_kv_heads, params.head_dim);

  const std::uint32_t num_active = std::min(num_workers(), plan.header->num_items);
  const auto work = [&](std::uint32_t worker) {
    cpu::run_worker(params, plan, worker, num_active, scratch + worker * scratch_bytes);
  };
  pool_.run(num_active, work);
}

host::CostModel CpuExecutor::cost_model(const Description& desc) {
  // One core streams K and V at some 8 GB/s while it computes; a claim with its table look-up,
  // prologue and result costs about as long as 8 KB. Threads of a shared machine lose time slices
  // to others, so more of the work than on a GPU is left to dynamic claims.
  constexpr double kBytesPerUs = 8000;
  const double token_bytes =
      2.0 * desc.head_dim * static_cast<double>(kernels::dtype_bytes(desc.kv_dtype));
  return {.token_us = token_bytes / kBytesPerUs,
          .item_us = 1.0,
          .min_split_tokens = 256,
          .dynamic_fraction = 0.15};
}

}  // namespace headrace::runtime
