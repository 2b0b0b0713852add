// Results of an item: how they are weighed, stored as a partial, or written as output.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/ptx/convert.cuh"
#include "kernels/cuda/sm90/config.cuh"
#include "scheduler/work_item.h"

namespace headrace::cuda::sm90 {

inline constexpr float kLog2E = 1.4426950408889634f;
inline constexpr float kLn2 = 0.6931471805599453f;

// Weight of a result whose running max is `max` among results of which `largest` is the largest.
// Empty results have max = -inf and weigh nothing, also beside other empty ones.
__device__ __forceinline__ float merge_weight(float max, float largest) {
  return max == -INFINITY ? 0.0f : ptx::exp2_approximate(max - largest);
}

// Writes four neighbouring elements (from 4 * lane) of one head's output, and its log-sum-exp.
// `o` and `sum` are unnormalised; `max` is in log2 units. Called by a whole warp.
__device__ __forceinline__ void write_output(const kernels::DecodeParams& params, int request,
                                             int head, float4 o, float max, float sum,
                                             float value_scale) {
  const int lane = threadIdx.x % 32;
  const float normalise = sum > 0.0f || sum != sum ? value_scale / sum : 0.0f;
  const std::int64_t offset =
      request * params.out_request_stride + head * params.out_head_stride + 4 * lane;
  uint2 packed;
  if (params.out_dtype == kernels::DType::kBFloat16) {
    packed = {ptx::pack<__nv_bfloat16>(o.x * normalise, o.y * normalise),
              ptx::pack<__nv_bfloat16>(o.z * normalise, o.w * normalise)};
  } else {
    packed = {ptx::pack<__half>(o.x * normalise, o.y * normalise),
              ptx::pack<__half>(o.z * normalise, o.w * normalise)};
  }
  *reinterpret_cast<uint2*>(static_cast<std::uint16_t*>(params.out) + offset) = packed;
  if (params.lse != nullptr && lane == 0) {
    params.lse[request * params.lse_request_stride + head * params.lse_head_stride] =
        sum > 0.0f || sum != sum ? (max + log2f(sum)) * kLn2 : -INFINITY;
  }
}

// A partial slot: O [group, 128], max [group] in log2 units, sum [group].
struct PartialSlot {
  float* o;
  float* max;
  float* sum;

  __device__ __forceinline__ PartialSlot(const kernels::DecodeParams& params, int group,
                                         std::uint32_t slot) {
    o = params.partials + slot * kernels::partial_floats(group, kHeadDim);
    max = o + group * kHeadDim;
    sum = max + group;
  }
};

}  // namespace headrace::cuda::sm90
