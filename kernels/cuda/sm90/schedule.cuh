// The schedule warp: claims items, works out their tokens, brings their queries.
#pragma once

#include "kernels/cuda/ptx/copy.cuh"
#include "kernels/cuda/ptx/dependency.cuh"
#include "kernels/cuda/ptx/mbarrier.cuh"
#include "kernels/cuda/sm90/smem.cuh"
#include "kernels/cuda/sm90/timeline.cuh"
#include "scheduler/queue.h"
#include "scheduler/share.h"

namespace headrace::cuda::sm90 {

template <class Config>
class ItemPublisher {
 public:
  __device__ ItemPublisher(const DecodeArguments& arguments, SharedStorage<Config>& shared)
      : params_(arguments.params), shared_(shared), lane_(threadIdx.x % 32) {}

  // Publishes one pass to the load and math warps, and waits until its last stages are about to be
  // issued. No slot is needed longer than that by the load warps. The preceding grid has ended when
  // this returns.
  __device__ void publish(const ItemPass& pass) {
    ptx::mbarrier_wait(&shared_.item_empty[position_.slot], position_.parity ^ 1);
    const std::uint32_t slot = position_.slot;
    if (lane_ == 0) {
      shared_.items[slot] = pass;
      ptx::mbarrier_arrive(&shared_.item_full[slot]);
    }
    ptx::wait_for_preceding_grid();
    if (pass.num_stages < 0) return;
    copy_queries(pass, slot);
    ptx::mbarrier_wait(&shared_.item_ending[slot], position_.parity);
    position_.advance();
  }

  __device__ int group() const { return params_.num_qo_heads / params_.num_kv_heads; }

 private:
  __device__ void copy_queries(const ItemPass& pass, std::uint32_t slot) {
    constexpr std::uint32_t kRowBytes = kHeadDim * sizeof(typename Config::QueryElement);
    const int heads = min(group() - pass.first_head, Config::kPassHeads);
    if (lane_ == 0) ptx::mbarrier_arrive_expect(&shared_.item_queries[slot], heads * kRowBytes);
    __syncwarp();
    if (lane_ >= heads) return;
    const auto* q = static_cast<const typename Config::QueryElement*>(params_.q);
    const std::int64_t head = pass.item.kv_head * group() + pass.first_head + lane_;
    ptx::copy_bytes(shared_.q[slot][lane_],
                    q + pass.item.request * params_.q_request_stride + head * params_.q_head_stride,
                    kRowBytes, &shared_.item_queries[slot]);
  }

  const kernels::DecodeParams& params_;
  SharedStorage<Config>& shared_;
  const int lane_;
  RingPosition<Config::kItemSlots> position_;
};

template <class Config>
__device__ __forceinline__ void schedule_items(const DecodeArguments& arguments,
                                               SharedStorage<Config>& shared) {
  const scheduler::PlanView& plan = arguments.plan;
  const std::uint32_t num_items = plan.header->num_items;
  const std::int32_t tile_tokens = static_cast<std::int32_t>(plan.header->tile_tokens);
  const bool leader = threadIdx.x % 32 == 0;
  ItemPublisher<Config> publisher(arguments, shared);

  // The plan may be read at any time, no kernel writes it; lengths and block tables as the caller
  // says. Control words are first touched after the preceding grid has ended.
  if (arguments.fresh_tokens == kAllTokens) ptx::wait_for_preceding_grid();
  std::uint64_t wanted = arguments.params.timeline != nullptr ? global_time_ns() : 0;
  std::uint32_t index = scheduler::first_claim(blockIdx.x);
  while (index < num_items) {
    const scheduler::WorkItem item = plan.items[index];
    if (item.request < arguments.params.num_requests) {
      if (leader) {
        stamp(arguments, index, &kernels::TimelineRecord::claimed);
        if (arguments.params.timeline != nullptr) {
          arguments.params.timeline[index].worker = blockIdx.x;
          arguments.params.timeline[index].wanted = wanted;
        }
      }
      const std::int32_t seq_len = arguments.params.seq_lens[item.request];
      const scheduler::TokenRange tokens = scheduler::token_range(item, seq_len, tile_tokens);
      ItemPass pass;
      pass.item = item;
      pass.index = index;
      pass.token_begin = static_cast<std::int32_t>(tokens.begin);
      pass.token_end = static_cast<std::int32_t>(tokens.end);
      pass.early_end = max(seq_len, 0) - min(max(seq_len, 0), arguments.fresh_tokens);
      pass.num_stages =
          (pass.token_end - pass.token_begin + Config::kStageTokens - 1) / Config::kStageTokens;
      for (int head = 0; head < publisher.group(); head += Config::kPassHeads) {
        pass.first_head = head;
        pass.last_pass = head + Config::kPassHeads >= publisher.group();
        publisher.publish(pass);
      }
    }
    ptx::wait_for_preceding_grid();  // a row that is not run has published nothing
    if (arguments.params.timeline != nullptr) wanted = global_time_ns();
    if (leader) index = scheduler::next_claim(plan.control, gridDim.x);
    index = __shfl_sync(0xffffffffu, index, 0);
  }
  ItemPass end{};
  end.num_stages = -1;
  publisher.publish(end);
  if (leader) scheduler::finish(plan.control, gridDim.x);
}

}  // namespace headrace::cuda::sm90
