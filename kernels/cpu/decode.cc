#include "kernels/cpu/decode.h"

#include <algorithm>

#include "kernels/cpu/attend.h"
#include "kernels/cpu/partial.h"
#include "scheduler/queue.h"
#include "scheduler/share.h"

namespace headrace::cpu {
namespace {

ItemShape item_shape(const kernels::DecodeParams& params, const scheduler::PlanView& plan) {
  const auto num_kv_heads = static_cast<std::size_t>(params.num_kv_heads);
  return {num_kv_heads / std::max(plan.header->num_kv_heads, 1u),
          static_cast<std::size_t>(params.num_qo_heads) / num_kv_heads,
          static_cast<std::size_t>(params.head_dim)};
}

void run_item(const kernels::DecodeParams& params, const scheduler::PlanView& plan,
              const ItemShape& shape, const scheduler::WorkItem& item, const Scratch& scratch) {
  const scheduler::TokenRange tokens =
      scheduler::token_range(item, params.seq_lens[item.request], plan.header->tile_tokens);
  const Partial result = partial_view(scratch.result, shape);

  if (item.split_count == 1) {
    attend(params, shape, item, tokens, scratch, result);
  } else {
    float* const slot = params.partials + scheduler::partial_slot(item) * shape.partial_floats();
    attend(params, shape, item, tokens, scratch, partial_view(slot, shape));
    if (!scheduler::arrive(plan.control, item)) return;
    merge_partials(params, shape, item, result);
  }
  write_result(params, shape, item, result);
}

}  // namespace

std::size_t worker_scratch_bytes(std::int32_t group, std::int32_t head_dim,
                                 std::int32_t kv_heads_per_item) {
  return ScratchLayout({static_cast<std::size_t>(kv_heads_per_item),
                        static_cast<std::size_t>(group), static_cast<std::size_t>(head_dim)})
      .total;
}

void run_worker(const kernels::DecodeParams& params, const scheduler::PlanView& plan,
                std::uint32_t worker, std::uint32_t num_workers, void* scratch_memory) noexcept {
  const ItemShape shape = item_shape(params, plan);
  const Scratch scratch = ScratchLayout(shape).view(scratch_memory);
  for (std::uint32_t index = scheduler::first_claim(worker); index < plan.header->num_items;
       index = scheduler::next_claim(plan.control, num_workers)) {
    const scheduler::WorkItem& item = plan.items[index];
    // The plan may cover more requests than this run has; all splits of those are skipped alike, so
    // nobody arrives for them.
    if (item.request >= params.num_requests) continue;
    run_item(params, plan, shape, item, scratch);
  }
  scheduler::finish(plan.control, num_workers);
}

const char* simd_target() noexcept { return attend_target(); }

}  // namespace headrace::cpu
