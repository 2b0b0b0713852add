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
inline constexpr int kMergeBatch = 16;

// Merges one head. Per batch of splits, all loads are in flight at once: each lane reads the weight
// of one split and four elements of O of all of them. Other SMs wrote the partials: L1 is passed
// by.
__device__ __forceinline__ void merge_head(const kernels::DecodeParams& params,
                                           const scheduler::WorkItem& item, int group,
                                           int head_in_group, float value_scale) {
  const int lane = threadIdx.x % 32;
  float4 o = {0.0f, 0.0f, 0.0f, 0.0f};
  float largest = -INFINITY;
  float sum = 0.0f;  // of this lane's splits
  for (int first = 0; first < item.split_count; first += kMergeBatch) {
    const int count = min(item.split_count - first, kMergeBatch);
    float4 parts[kMergeBatch];
#pragma unroll
    for (int i = 0; i < kMergeBatch; ++i) {
      const PartialSlot slot(params, group, item.first_slot + first + min(i, count - 1));
      parts[i] = __ldcg(reinterpret_cast<const float4*>(slot.o + head_in_group * kHeadDim) + lane);
    }
    float part_max = -INFINITY;
    float part_sum = 0.0f;
    if (lane < count) {
      const PartialSlot slot(params, group, item.first_slot + first + lane);
      part_max = __ldcg(slot.max + head_in_group);
      part_sum = __ldcg(slot.sum + head_in_group);
    }
    float new_largest = fmaxf(largest, part_max);
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      new_largest = fmaxf(new_largest, __shfl_xor_sync(0xffffffffu, new_largest, offset));
    }
    const float decay = merge_weight(largest, new_largest);
    const float weight = merge_weight(part_max, new_largest);
    largest = new_largest;
    sum = sum * decay + weight * part_sum;
    o.x *= decay;
    o.y *= decay;
    o.z *= decay;
    o.w *= decay;
#pragma unroll
    for (int i = 0; i < kMergeBatch; ++i) {
      if (i < count) {
        const float w = __shfl_sync(0xffffffffu, weight, i);
        o.x += w * parts[i].x;
        o.y += w * parts[i].y;
        o.z += w * parts[i].z;
        o.w += w * parts[i].w;
      }
    }
  }
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  }
  write_output(params, item.request, item.kv_head * group + head_in_group, o, largest, sum,
               value_scale);
}

template <class Config>
__device__ __forceinline__ void merge_items(const DecodeArguments& arguments,
                                            SharedStorage<Config>& shared) {
  const kernels::DecodeParams& params = arguments.params;
  const int group = params.num_qo_heads / params.num_kv_heads;
  const int warp = threadIdx.x / 32 - Config::kFirstMergeWarp;
  const int lane = threadIdx.x % 32;
  const bool leader = warp == 0 && lane == 0;
  RingPosition<Config::kItemSlots> position;
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
      ptx::barrier_sync(kMergeBarrier, Config::kMergeThreads);
      merges = shared.merges;
      ptx::barrier_sync(kMergeBarrier, Config::kMergeThreads);  // all have read
    }
    if (merges) {
      const float value_scale =
          params.v_scale != nullptr ? params.v_scale[pass.item.kv_head] : 1.0f;
      for (int head = warp; head < group; head += Config::kMergeWarps) {
        merge_head(params, pass.item, group, head, value_scale);
      }
    }
    if (leader && arguments.params.timeline != nullptr) {
      stamp(arguments, pass.index, &kernels::TimelineRecord::finished);
      arguments.params.timeline[pass.index].merged = merges;
    }
  }
}

}  // namespace headrace::cuda::sm90
