// The shared memory of one block.
#pragma once

#include <cstdint>

#include "kernels/cuda/sm90/config.cuh"
#include "scheduler/work_item.h"

namespace headrace::cuda::sm90 {

// One work item, or one pass of it when the group has more heads than a pass.
struct ItemPass {
  scheduler::WorkItem item;
  std::uint32_t index;  // of the item in the queue
  std::int32_t token_begin;
  std::int32_t token_end;
  std::int32_t early_end;   // tokens before it may be read before the preceding grid has ended
  std::int32_t num_stages;  // -1: the queue is empty
  std::int32_t first_head;  // of the pass, within the group
  std::int32_t last_pass;   // 1: after this pass the item is complete
};

template <class Config>
struct SharedStorage {
  // Rows of 128 bytes, the 16-byte chunks of each exclusive-ored with the row number mod 8 by the
  // copy engine.
  alignas(1024) unsigned char k[Config::kStages][Config::kStageBytes];
  alignas(1024) unsigned char v[Config::kStages][Config::kStageBytes];

  // Queries of an item; rows are padded so that eight heads fall on different banks.
  static constexpr int kQueryRowElements = kHeadDim + 8;
  alignas(128)
      typename Config::QueryElement q[Config::kItemSlots][Config::kPassHeads][kQueryRowElements];

  // Where the warps' results of one item meet: O by head, rows padded for the same reason.
  static constexpr int kResultRowFloats = kHeadDim + 4;
  alignas(16) float o[Config::kMathWarps][8][kResultRowFloats];
  float row_max[Config::kMathWarps][8];
  float row_sum[Config::kMathWarps][8];

  // O of the splits that are merged, by merge warp.
  alignas(128) float merge_o[Config::kMergeSplits][Config::kMergeWarps][kHeadDim];

  ItemPass items[Config::kItemSlots];
  bool merges;  // whether this block merges the item that the merge warps are at

  // Ring: a stage is full when its bytes are there (arrive: both load warps), empty when the warp
  // that computes it has read it (arrives: that warp).
  std::uint64_t stage_full[Config::kStages];
  std::uint64_t stage_empty[Config::kStages];
  // Items: a slot is full when the record is there (arrives: schedule warp), which has queries when
  // they are there as well (arrives: schedule warp, after the preceding grid has ended), ending
  // when its last stages are about to be issued (arrive: all threads of both load warps), done when
  // output or partial are written (arrive: all math warps), empty when it has been read (arrive:
  // all threads of math and merge warps).
  std::uint64_t item_full[Config::kItemSlots];
  std::uint64_t item_queries[Config::kItemSlots];
  std::uint64_t item_ending[Config::kItemSlots];
  std::uint64_t item_done[Config::kItemSlots];
  std::uint64_t item_empty[Config::kItemSlots];
  // merge_o is full when its bytes are there (arrives: the first merge warp).
  std::uint64_t merge_full;
};

// Position in a ring of `Size` slots, with the parity of the phase it belongs to.
template <int Size>
struct RingPosition {
  std::uint32_t slot = 0;
  std::uint32_t parity = 0;

  __device__ __forceinline__ void advance() {
    if (++slot == Size) {
      slot = 0;
      parity ^= 1;
    }
  }
};

}  // namespace headrace::cuda::sm90
