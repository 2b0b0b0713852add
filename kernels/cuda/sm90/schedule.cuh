// The schedule warp: claims items, works out their tokens, brings their queries.
#pragma once

#include "kernels/cuda/ptx/copy.cuh"
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
  // issued. No slot is needed longer than that by the load warps.
  __device__ void publish(const ItemPass& pass) {
    ptx::mbarrier_wait(&shared_.item_empty[position_.slot], position_.parity ^ 1);
    const std::uint32_t slot = position_.slot;
    const int heads = pass.num_stages < 0 ? 0 : pass_heads(pass);
    if (lane_ == 0) {
      shared_.items[slot] = pass;
      ptx::mbarrier_arrive_expect(&shared_.item_full[slot],
                                  heads * kHeadDim * sizeof(typename Config::QueryElement));
    }
    __syncwarp();
    if (lane_ < heads) {
      const auto* q = static_cast<const typename Config::QueryElement*>(params_.q);
      const std::int64_t head = pass.item.kv_head * group() + pass.first_head + lane_;
      ptx::copy_bytes(
          shared_.q[slot][lane_],
          q + pass.item.request * params_.q_request_stride + head * params_.q_head_stride,
          kHeadDim * sizeof(typename Config::QueryElement), &shared_.item_full[slot]);
    }
    if (pass.num_stages >= 0) ptx::mbarrier_wait(&shared_.item_ending[slot], position_.parity);
    position_.advance();
  }

  __device__ int group() const { return params_.num_qo_heads / params_.num_kv_heads; }

 private:
  __device__ int pass_heads(const ItemPass& pass) const {
    return min(group() - pass.first_head, Config::kPassHeads);
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

  std::uint32_t index = scheduler::first_claim(blockIdx.x);
  while (index < num_items) {
    const scheduler::WorkItem item = plan.items[index];
    if (leader) {
      stamp(arguments, index, &TimelineRecord::claimed);
      if (arguments.timeline != nullptr) arguments.timeline[index].worker = blockIdx.x;
    }
    if (item.request < arguments.params.num_requests) {
      const scheduler::TokenRange tokens =
          scheduler::token_range(item, arguments.params.seq_lens[item.request], tile_tokens);
      ItemPass pass;
      pass.item = item;
      pass.index = index;
      pass.token_begin = static_cast<std::int32_t>(tokens.begin);
      pass.token_end = static_cast<std::int32_t>(tokens.end);
      pass.num_stages =
          (pass.token_end - pass.token_begin + Config::kStageTokens - 1) / Config::kStageTokens;
      for (int head = 0; head < publisher.group(); head += Config::kPassHeads) {
        pass.first_head = head;
        pass.last_pass = head + Config::kPassHeads >= publisher.group();
        publisher.publish(pass);
      }
    }
    if (leader) index = scheduler::next_claim(plan.control, gridDim.x);
    index = __shfl_sync(0xffffffffu, index, 0);
  }
  ItemPass end{};
  end.num_stages = -1;
  publisher.publish(end);
  if (leader) scheduler::finish(plan.control, gridDim.x);
}

}  // namespace headrace::cuda::sm90
