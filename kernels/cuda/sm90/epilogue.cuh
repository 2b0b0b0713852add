// The end of an item: the warps' results meet in shared memory and become an output or a partial.
#pragma once

#include "kernels/cuda/sm90/math.cuh"
#include "kernels/cuda/sm90/result.cuh"
#include "kernels/cuda/sm90/timeline.cuh"

namespace headrace::cuda::sm90 {

inline constexpr int kMathBarrier = 1;

template <class Config>
__device__ __forceinline__ void math_barrier() {
  ptx::barrier_sync(kMathBarrier, Config::kMathThreads);
}

// Writes one head tile of a warp's result to the meeting place.
template <class Config>
__device__ __forceinline__ void share_result(SharedStorage<Config>& shared, int head_tile,
                                             const RunningResult<Config>& result) {
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    const int column = 2 * (lane % 4) + j;
    float sum = result.sum[head_tile][j];
#pragma unroll
    for (int offset = 4; offset < 32; offset *= 2) {
      sum += __shfl_xor_sync(kAllLanes, sum, offset);
    }
    if (lane < 4) {
      shared.row_max[warp][column] = result.max[head_tile][j];
      shared.row_sum[warp][column] = sum;
    }
    float* row = shared.o[warp][column];
#pragma unroll
    for (int i = 0; i < kDimSteps; ++i) {
      const float first = result.o[head_tile][i][j];
      const float second = result.o[head_tile][i][j + 2];
      if constexpr (Config::kFp8) {
        *reinterpret_cast<float2*>(row + 16 * i + 2 * (lane / 4)) = {first, second};
      } else {
        row[16 * i + lane / 4] = first;
        row[16 * i + lane / 4 + 8] = second;
      }
    }
  }
}

// One warp adds up one head's results of all warps: four elements of O per lane.
template <class Config>
__device__ __forceinline__ void finish_head(const kernels::DecodeParams& params,
                                            const SharedStorage<Config>& shared,
                                            const scheduler::WorkItem& item, int group, int head,
                                            int column, int first_warp, float value_scale) {
  const int lane = threadIdx.x % 32;
  float largest = -INFINITY;
#pragma unroll
  for (int w = 0; w < Config::kMathWarps; ++w) {
    largest = fmaxf(largest, shared.row_max[w][column]);
  }
  float4 o = {0.0f, 0.0f, 0.0f, 0.0f};
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < Config::kMathWarps; ++i) {
    const int w = (first_warp + i) % Config::kMathWarps;
    const float weight = merge_weight(shared.row_max[w][column], largest);
    const float4 part = reinterpret_cast<const float4*>(shared.o[w][column])[lane];
    sum += weight * shared.row_sum[w][column];
    o.x += weight * part.x;
    o.y += weight * part.y;
    o.z += weight * part.z;
    o.w += weight * part.w;
  }
  if (item.split_count == 1) {
    write_output(params, item.request, item.kv_head * group + head, o, largest, sum, value_scale);
  } else {
    const PartialSlot slot(params, group, scheduler::partial_slot(item));
    __stcg(reinterpret_cast<float4*>(slot.o + head * kHeadDim) + lane, o);
    if (lane == 0) {
      __stcg(slot.max + head, largest);
      __stcg(slot.sum + head, sum);
    }
  }
}

// Called by all math warps with their results of one pass; they share out the heads.
// `first_warp` is the warp that had the item's first stage: results are added from it on, so that
// their order depends on the item alone.
template <class Config>
__device__ __forceinline__ void finish_pass(const DecodeArguments& arguments,
                                            SharedStorage<Config>& shared, const ItemPass& pass,
                                            int first_warp, float value_scale,
                                            const RunningResult<Config>& result) {
  const kernels::DecodeParams& params = arguments.params;
  const scheduler::WorkItem& item = pass.item;
  const int group = params.num_qo_heads / params.num_kv_heads;
  const int warp = threadIdx.x / 32;

#pragma unroll
  for (int h = 0; h < Config::kHeadTiles; ++h) {
    share_result(shared, h, result);
    math_barrier<Config>();  // all results of this head tile are there
    if (threadIdx.x == 0) stamp(arguments, pass.index, &kernels::TimelineRecord::computed);
    for (int column = warp; column < 8; column += Config::kMathWarps) {
      const int head = pass.first_head + 8 * h + column;
      if (head < group)
        finish_head(params, shared, item, group, head, column, first_warp, value_scale);
    }
    math_barrier<Config>();  // all have read: the meeting place is free
  }
}

}  // namespace headrace::cuda::sm90
