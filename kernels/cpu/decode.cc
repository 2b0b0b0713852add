#include "kernels/cpu/decode.h"

#include <algorithm>
#include <chrono>

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

std::uint64_t now_ns() {
  const auto since_start = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(since_start).count());
}

// Records are only written on request: a clock costs more than a small item.
class Recorder {
 public:
  // `record` may be null.
  Recorder(kernels::TimelineRecord* record, std::uint32_t worker, std::uint64_t wanted_ns)
      : record_(record) {
    if (record_ == nullptr) return;
    const std::uint64_t now = now_ns();
    // A thread loads as it computes: there are no copies to wait for.
    *record_ = {.worker = worker,
                .merged = 0,
                .wanted = wanted_ns,
                .claimed = now,
                .issued = now,
                .first_byte = now,
                .last_byte = now,
                .computed = now,
                .finished = now};
  }

  void computed() const {
    if (record_ != nullptr) record_->last_byte = record_->computed = now_ns();
  }
  void finished(bool merged) const {
    if (record_ == nullptr) return;
    record_->merged = merged ? 1 : 0;
    record_->finished = now_ns();
  }

 private:
  kernels::TimelineRecord* record_;
};

void run_item(const kernels::DecodeParams& params, const scheduler::PlanView& plan,
              const ItemShape& shape, const scheduler::WorkItem& item, const Scratch& scratch,
              const Recorder& recorder) {
  const scheduler::TokenRange tokens =
      scheduler::token_range(item, params.seq_lens[item.request], plan.header->tile_tokens);
  const Partial result = partial_view(scratch.result, shape);

  if (item.split_count == 1) {
    attend(params, shape, item, tokens, scratch, result);
    recorder.computed();
  } else {
    float* const slot = params.partials + scheduler::partial_slot(item) * shape.partial_floats();
    attend(params, shape, item, tokens, scratch, partial_view(slot, shape));
    recorder.computed();
    if (!scheduler::arrive(plan.control, item)) return recorder.finished(false);
    merge_partials(params, shape, item, result);
  }
  write_result(params, shape, item, result);
  recorder.finished(item.split_count > 1);
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
  const bool records = params.timeline != nullptr;
  std::uint64_t wanted_ns = records ? now_ns() : 0;
  std::uint32_t index = scheduler::first_claim(worker);
  while (index < plan.header->num_items) {
    const scheduler::WorkItem& item = plan.items[index];
    // The plan may cover more requests than this run has; all splits of those are skipped alike, so
    // nobody arrives for them.
    if (item.request < params.num_requests) {
      const Recorder recorder(records ? params.timeline + index : nullptr, worker, wanted_ns);
      run_item(params, plan, shape, item, scratch, recorder);
    }
    if (records) wanted_ns = now_ns();
    index = scheduler::next_claim(plan.control, num_workers);
  }
  scheduler::finish(plan.control, num_workers);
}

const char* simd_target() noexcept { return attend_target(); }

}  // namespace headrace::cpu
