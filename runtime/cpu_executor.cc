#include "runtime/cpu_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "kernels/cpu/decode.h"
#include "runtime/validate.h"

namespace headrace::runtime {
namespace {

// Partial slots, then the scratch memory of each worker. In bytes.
struct WorkspaceLayout {
  std::size_t scratch_offset;
  std::size_t worker_bytes;
};

WorkspaceLayout workspace_layout(std::int32_t group, std::int32_t head_dim, std::int32_t heads,
                                 std::uint32_t max_partials) {
  const std::size_t slot_floats = kernels::partial_floats(static_cast<std::size_t>(heads * group),
                                                          static_cast<std::size_t>(head_dim));
  const std::size_t partial_bytes = max_partials * slot_floats * sizeof(float);
  return {(partial_bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment,
          cpu::worker_scratch_bytes(group, head_dim, heads)};
}

class CpuPlanBuffer final : public PlanBuffer {
 public:
  CpuPlanBuffer(void* buffer, const scheduler::PlanLayout& layout)
      : buffer_(buffer), layout_(layout) {}

  headrace_status publish(const scheduler::PlanHeader& header,
                          std::span<const scheduler::WorkItem> items,
                          void* /*stream*/) noexcept override {
    auto* const bytes = static_cast<std::byte*>(buffer_);
    std::memcpy(bytes + layout_.header_offset, &header, sizeof(header));
    std::copy(items.begin(), items.end(),
              reinterpret_cast<scheduler::WorkItem*>(bytes + layout_.items_offset));
    return HEADRACE_OK;
  }

  scheduler::PlanView view() const noexcept override {
    return scheduler::plan_view(buffer_, layout_);
  }

 private:
  void* buffer_;
  scheduler::PlanLayout layout_;
};

}  // namespace

CpuExecutor::CpuExecutor(std::uint32_t num_workers)
    : pool_(num_workers != 0 ? num_workers : std::max(1u, std::thread::hardware_concurrency())) {}

std::string CpuExecutor::describe() const {
  return fmt::format("CPU, {} thread{}, {}", num_workers(), num_workers() == 1 ? "" : "s",
                     cpu::simd_target());
}

Executor::Alignments CpuExecutor::alignments(const Description& desc) const noexcept {
  return {kernels::dtype_bytes(desc.q_dtype), kernels::dtype_bytes(desc.kv_dtype),
          kernels::dtype_bytes(desc.out_dtype)};
}

std::int32_t CpuExecutor::kv_heads_per_item(const Description& desc) const noexcept {
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

host::CostModel CpuExecutor::cost_model(const Description& desc) const noexcept {
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

std::size_t CpuExecutor::workspace_bytes(const Description& desc,
                                         const scheduler::PlanCapacity& capacity) const noexcept {
  const WorkspaceLayout layout =
      workspace_layout(desc.group, desc.head_dim, kv_heads_per_item(desc), capacity.max_partials);
  return layout.scratch_offset + num_workers() * layout.worker_bytes;
}

headrace_status CpuExecutor::make_plan_buffer(void* buffer, const scheduler::PlanLayout& layout,
                                              const scheduler::PlanCapacity& capacity,
                                              std::unique_ptr<PlanBuffer>& plan_buffer) const {
  plan_buffer = std::make_unique<CpuPlanBuffer>(buffer, layout);
  // The buffer is touched last, when nothing can fail any more.
  scheduler::initialise_control(static_cast<std::uint32_t*>(buffer), capacity.max_partials);
  return HEADRACE_OK;
}

headrace_status CpuExecutor::validate(const kernels::DecodeParams& params, void* /*stream*/) const {
  return validate_tables(
      {.seq_lens = {params.seq_lens, static_cast<std::size_t>(params.num_requests)},
       .table = params.block_table,
       .row_distance = params.block_table_stride,
       .row_entries = params.block_table_stride,
       .page_size = params.page_size,
       .num_pages = params.num_pages});
}

headrace_status CpuExecutor::run(kernels::DecodeParams params, const PlanBuffer& plan,
                                 const scheduler::PlanCapacity& capacity, void* workspace,
                                 const Launch& /*launch*/) noexcept {
  const scheduler::PlanView view = plan.view();
  const WorkspaceLayout layout =
      workspace_layout(params.num_qo_heads / params.num_kv_heads, params.head_dim,
                       params.num_kv_heads / static_cast<std::int32_t>(view.header->num_kv_heads),
                       capacity.max_partials);
  auto* bytes = static_cast<std::byte*>(workspace);
  params.partials = reinterpret_cast<float*>(bytes);
  std::byte* const scratch = bytes + layout.scratch_offset;

  const std::uint32_t num_active = std::min(num_workers(), view.header->num_items);
  const auto work = [&](std::uint32_t worker) {
    cpu::run_worker(params, view, worker, num_active, scratch + worker * layout.worker_bytes);
  };
  pool_.run(num_active, work);
  return HEADRACE_OK;
}

}  // namespace headrace::runtime
