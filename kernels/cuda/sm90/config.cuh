// The choices of one kernel instantiation. Sizes exist once, here; the host reads them too.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/decode_kernel.h"

namespace headrace::cuda::sm90 {

inline constexpr unsigned kAllLanes = 0xffffffffu;  // of a warp

// Query: __nv_bfloat16 or __half. Cache: Query, or __nv_fp8_e4m3. HeadTiles: query heads are the
// columns of the matrix instructions, eight to a tile; larger groups take several passes.
template <class Query, class Cache, int HeadTiles>
struct DecodeConfig {
  using QueryElement = Query;
  using CacheElement = Cache;
  static constexpr bool kFp8 = std::is_same_v<Cache, __nv_fp8_e4m3>;
  // What the tensor cores multiply: e4m3 widens to fp16 exactly.
  using MathElement = std::conditional_t<kFp8, __half, Query>;

  static constexpr int kHeadTiles = HeadTiles;
  static constexpr int kPassHeads = 8 * HeadTiles;

  // One block per SM: one warpgroup computes; of the second, one warp claims items and two stream
  // pages; the third merges. The registers that the others do not need go to the first.
  static constexpr int kMathWarps = 4;
  static constexpr int kMathThreads = 32 * kMathWarps;
  static constexpr int kMergeWarps = 4;
  static constexpr int kMergeThreads = 32 * kMergeWarps;
  static constexpr int kThreads = kMathThreads + 128 + kMergeThreads;
  static constexpr int kScheduleWarp = kMathWarps;
  static constexpr int kKeyLoadWarp = kMathWarps + 1;
  static constexpr int kValueLoadWarp = kMathWarps + 2;
  static constexpr int kFirstMergeWarp = kMathWarps + 4;
  static constexpr int kBlocksPerSm = 1;
  static constexpr int kMathRegisters = 240;
  static constexpr int kOtherRegisters = 128;

  // The ring: stages of K and of V, each computed by one warp. A slot always belongs to the same
  // warp: copies may complete out of order, and a barrier tells only neighbouring phases apart.
  static constexpr int kStageBytes = 8192;  // of K, and of V
  static constexpr int kStages = 8;
  static_assert(kStages % kMathWarps == 0);
  static constexpr int kElementBytes = sizeof(Cache);
  static constexpr int kRowBytes = kHeadDim * kElementBytes;
  static constexpr int kHalves = kRowBytes / 128;  // 128-byte pieces of a row, swizzled each
  static constexpr int kStageTokens = kStageBytes / kRowBytes;
  static constexpr int kStageTiles = kStageTokens / 16;

  // The next item is claimed when this many stages are left to issue: at full rate they last longer
  // than the way from a claim to the first page id (an atomic and three dependent loads, 2.5 us).
  static constexpr int kClaimLeadStages = 8;

  // Probabilities are taken relative to a point so far below the running max, in log2 units: fp16
  // ones reach 2^15 then, and those of very many tokens far below the max still count.
  static constexpr float kProbabilityShift = std::is_same_v<MathElement, __half> ? 15.0f : 0.0f;

  // bf16 probabilities have too few bits: a second product adds what rounding them lost.
  static constexpr bool kSplitProbabilities = std::is_same_v<MathElement, __nv_bfloat16>;
  static constexpr int kProbabilityParts = kSplitProbabilities ? 2 : 1;

  // A merge brings so many splits at once, one head of each per merge warp.
  static constexpr int kMergeSplits = 32;

  // Items in flight between the schedule warp and the warps that compute.
  static constexpr int kItemSlots = 4;
};

}  // namespace headrace::cuda::sm90
