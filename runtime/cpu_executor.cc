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

std::int32_t CpuExecutor::kv_heads_per_item(const Description& desc) {
  // Where the heads of a token lie next to each other, one head at a time would skip through
  // memory in strides; all heads together read it in order, more than twice as fast.
  const bool heads_innermost = desc.k.head < desc.k.token && desc.v.head < desc.v.token;
  if (!heads_innermost) return 1;
  // Queries, accumulators and results of an item stay in a part of the L2 cache.
  constexpr std::int64_t kStateBytes = 128 * 1024;
  const std::int64_t head_bytes = std::int64_t{3} * sizeof(float) * desc.group * desc.head_dim;
  std::int32_t heads = 1;
  for (std::int32_t divisor = 2; divisor * head_bytes <= kStateBytes; ++divisor) {
    if (desc.num_kv_heads % divisor == 0) heads = divisor;
  }
  return heads;
}

host::CostModel CpuExecutor::cost_model(const Description& desc) {
  // One core streams K and V at some 8 GB/s while it computes; a claim with its table look-up,
  // prologue and result costs about as long as 8 KB. Threads of a shared machine lose time slices
  // to others, so more of the work than on a GPU is left to dynamic claims.
  constexpr double kBytesPerUs = 8000;
  const std::int32_t heads = kv_heads_per_item(desc);
  const double token_bytes =
      2.0 * heads * desc.head_dim * static_cast<double>(kernels::dtype_bytes(desc.kv_dtype));
  return {.token_us = token_bytes / kBytesPerUs,
          .item_us = 1.0,
          .min_split_tokens = std::max(64, 256 / heads),
          .dynamic_fraction = 0.15};
}

CpuExecutor::Workspace CpuExecutor::workspace(const Description& desc,
                                              const scheduler::PlanCapacity& capacity) const {
  const std::int32_t heads = kv_heads_per_item(desc);
  const std::size_t slot_floats = kernels::partial_floats(
      static_cast<std::size_t>(heads * desc.group), static_cast<std::size_t>(desc.head_dim));
  const std::size_t partial_bytes = capacity.max_partials * slot_floats * sizeof(float);
  const std::size_t scratch_offset =
      (partial_bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  const std::size_t worker_bytes = cpu::worker_scratch_bytes(desc.group, desc.head_dim, heads);
  return {scratch_offset, worker_bytes, scratch_offset + num_workers() * worker_bytes};
}

void CpuExecutor::run(kernels::DecodeParams params, const scheduler::PlanView& plan,
                      const Workspace& layout, void* workspace) {
  auto* bytes = static_cast<std::byte*>(workspace);
  params.partials = reinterpret_cast<float*>(bytes);
  std::byte* const scratch = bytes + layout.scratch_offset;

  const std::uint32_t num_active = std::min(num_workers(), plan.header->num_items);
  const auto work = [&](std::uint32_t worker) {
    cpu::run_worker(params, plan, worker, num_active, scratch + worker * layout.worker_bytes);
  };
  pool_.run(num_active, work);
}

}  // namespace headrace::runtime
