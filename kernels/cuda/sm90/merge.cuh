// The merge warps: they say that partials are written, and where they are the last ones of their
// request and KV head, merge all of them in split order. The math warps are at the next item
// meanwhile: under load the round trips below take 10 us.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/ptx/mbarrier.cuh"
#include "kernels/cuda/sm90/result.cuh"
#include "kernels/cuda/sm90/smem.cuh"
#include "kernels/cuda/sm90/timeline.cuh"
#include "scheduler/queue.h"

namespace headrace::cuda::sm90 {

inline constexpr int kMergeBarrier = 2;
template <class Config>
__device__ __forceinline__ void merge_barrier() {
  ptx::barrier_sync(kMergeBarrier, Config::kMergeThreads);
}

// Merges all splits of one request and KV head, one head per merge warp at a time. A batch of
// splits is brought by the copy engine, all of it in flight at once without a register; a lane
// reads the weight of one split meanwhile. `parity` is of the next phase of merge_full.
template <class Config>
__device__ __forceinline__ void merge_splits(const kernels::DecodeParams& params,
                                             SharedStorage<Config>& shared,
                                             const scheduler::WorkItem& item, int group,
                                             float value_scale, std::uint32_t& parity) {
  const int warp = threadIdx.x / 32 - Config::kFirstMergeWarp;
  const int lane = threadIdx.x % 32;
  for (int first_head = 0; first_head < group; first_head += Config::kMergeWarps) {
    const int heads = min(group - first_head, Config::kMergeWarps);
    const int head = first_head + min(warp, heads - 1);
    float4 o = {0.0f, 0.0f, 0.0f, 0.0f};
    float largest = -INFINITY;
    float sum = 0.0f;  // of this lane's splits
    for (int first = 0; first < item.split_count; first += Config::kMergeSplits) {
      const int count = min(item.split_count - first, Config::kMergeSplits);
      const PartialSlot slot(params, group, item.first_slot + first + min(lane, count - 1));
      if (warp == 0) {
        const std::uint32_t bytes = heads * kHeadDim * sizeof(float);
        if (lane == 0) ptx::mbarrier_arrive_expect(&shared.merge_full, count * bytes);
        __syncwarp();
        ptx::fence_proxy_async_global();
        if (lane < count) {
          ptx::copy_bytes(shared.merge_o[lane], slot.o + first_head * kHeadDim, bytes,
                          &shared.merge_full);
        }
      }
      // Other SMs wrote them: L1 is passed by.
      const float part_max = lane < count ? __ldcg(slot.max + head) : -INFINITY;
      const float part_sum = lane < count ? __ldcg(slot.sum + head) : 0.0f;
      float new_largest = fmaxf(largest, part_max);
#pragma unroll
      for (int offset = 1; offset < 32; offset *= 2) {
        new_largest = fmaxf(new_largest, __shfl_xor_sync(kAllLanes, new_largest, offset));
      }
      const float decay = merge_weight(largest, new_largest);
      const float weight = merge_weight(part_max, new_largest);
      largest = new_largest;
      sum = sum * decay + weight * part_sum;
      o = {o.x * decay, o.y * decay, o.z * decay, o.w * decay};
      ptx::mbarrier_wait(&shared.merge_full, parity);
      parity ^= 1;
#pragma unroll 4
      for (int i = 0; i < count; ++i) {
        const float w = __shfl_sync(kAllLanes, weight, i);
        const float4 part =
            reinterpret_cast<const float4*>(shared.merge_o[i][head - first_head])[lane];
        o = {o.x + w * part.x, o.y + w * part.y, o.z + w * part.z, o.w + w * part.w};
      }
      merge_barrier<Config>();  // all have read: the next batch may come
    }
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      sum += __shfl_xor_sync(kAllLanes, sum, offset);
    }
    if (warp < heads) {
      write_output(params, item.request, item.kv_head * group + head, o, largest, sum, value_scale);
    }
  }
}

template <class Config>
__device__ __forceinline__ void merge_items(const DecodeArguments& arguments,
                                            SharedStorage<Config>& shared) {
  const kernels::DecodeParams& params = arguments.params;
  const int group = params.num_qo_heads / params.num_kv_heads;
  const bool leader = threadIdx.x == 32 * Config::kFirstMergeWarp;
  RingPosition<Config::kItemSlots> position;
  std::uint32_t parity = 0;  // of merge_full
  while (true) {
    ptx::mbarrier_wait(&shared.item_full[position.slot], position.parity);
    const ItemPass pass = shared.items[position.slot];
    if (pass.num_stages < 0) return;
    ptx::mbarrier_arrive(&shared.item_empty[position.slot]);
    ptx::mbarrier_wait(&shared.item_done[position.slot], position.parity);
    position.advance();

    bool merges = false;
    if (pass.item.split_count > 1 && pass.last_pass) {
      // The wait above ordered this block's partials before the leader's release; its acquire and
      // the barrier below order those of other blocks before the loads of the merge.
      if (leader) shared.merges = scheduler::arrive(arguments.plan.control, pass.item);
      merge_barrier<Config>();
      merges = shared.merges;
      merge_barrier<Config>();  // all have read
    }
    if (merges) {
      const float value_scale =
          params.v_scale != nullptr ? params.v_scale[pass.item.kv_head] : 1.0f;
      merge_splits(params, shared, pass.item, group, value_scale, parity);
    }
    if (leader && arguments.params.timeline != nullptr) {
      stamp(arguments, pass.index, &kernels::TimelineRecord::finished);
      arguments.params.timeline[pass.index].merged = merges;
    }
  }
}

}  // namespace headrace::cuda::sm90
