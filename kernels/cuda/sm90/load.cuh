// The two load warps, one for K and one for V: they turn token ranges into page ids and stream the
// pages through the ring.
#pragma once

#include "kernels/cuda/ptx/copy.cuh"
#include "kernels/cuda/ptx/dependency.cuh"
#include "kernels/cuda/ptx/mbarrier.cuh"
#include "kernels/cuda/sm90/smem.cuh"
#include "kernels/cuda/sm90/timeline.cuh"

namespace headrace::cuda::sm90 {

// Streams the pages of one item from the pool described by `map` into its half of the ring.
//
// A batch is 32 boxes, one per lane, of several stages: each lane works out where its box lies and
// reads its entry of the block table, the one of the next batch before the current batch is issued.
// What is left to do per stage is little enough for one warp to keep an SM busy with 2 KB copies.
template <class Config>
__device__ __forceinline__ void load_item(
    const DecodeArguments& arguments, SharedStorage<Config>& shared, const CUtensorMap& map,
    unsigned char (&ring)[Config::kStages][Config::kStageBytes], const ItemPass& pass,
    std::uint64_t* ending, RingPosition<Config::kStages>& stage, bool& preceding_ended) {
  const kernels::DecodeParams& params = arguments.params;
  const int lane = threadIdx.x % 32;
  const int box_tokens = arguments.box_tokens;
  const int boxes = Config::kStageTokens / box_tokens;
  const int box_stage = lane / boxes;  // the stage of the batch that this lane's box belongs to
  const int box_offset = lane % boxes * box_tokens * Config::kRowBytes;
  const std::int32_t* const row =
      params.block_table + pass.item.request * params.block_table_stride;

  // Entries at or past the item's end are never read.
  int token = pass.token_begin + lane * box_tokens;
  int page_index = token / params.page_size;
  int page = token < pass.token_end ? row[page_index] : 0;
  int stages_left = pass.num_stages;
  while (stages_left > 0) {
    const int next_token = token + 32 * box_tokens;
    const int next_page_index = next_token / params.page_size;
    const int next_page = next_token < pass.token_end ? row[next_page_index] : 0;
    const int token_in_page = token - page_index * params.page_size;

    for (int i = 0; i * boxes < 32 && stages_left > 0; ++i, --stages_left) {
      if (stages_left == Config::kClaimLeadStages) ptx::mbarrier_arrive(ending);
      const int tokens_left = pass.token_end - pass.token_begin -
                              (pass.num_stages - stages_left) * Config::kStageTokens;
      const int listed_tokens =
          (min(tokens_left, Config::kStageTokens) + box_tokens - 1) & -box_tokens;
      const int stage_end = pass.token_end - max(tokens_left - Config::kStageTokens, 0);
      if (!preceding_ended && stage_end > pass.early_end) {
        ptx::wait_for_preceding_grid();
        preceding_ended = true;
      }
      ptx::mbarrier_wait(&shared.stage_empty[stage.slot], stage.parity ^ 1);
      if (lane == 0) {
        ptx::mbarrier_arrive_expect(&shared.stage_full[stage.slot],
                                    listed_tokens * Config::kRowBytes);
      }
      __syncwarp();
      if (i == box_stage && token < pass.token_end) {
        ptx::copy_box(ring[stage.slot] + box_offset, &map, 0, token_in_page, 0, pass.item.kv_head,
                      page, &shared.stage_full[stage.slot]);
      }
      stage.advance();
    }
    token = next_token;
    page_index = next_page_index;
    page = next_page;
  }
}

template <class Config>
__device__ __forceinline__ void load_pages(
    const DecodeArguments& arguments, SharedStorage<Config>& shared, const CUtensorMap& map,
    unsigned char (&ring)[Config::kStages][Config::kStageBytes]) {
  RingPosition<Config::kItemSlots> item;
  RingPosition<Config::kStages> stage;
  bool preceding_ended = false;  // as far as this warp knows
  while (true) {
    ptx::mbarrier_wait(&shared.item_full[item.slot], item.parity);
    const ItemPass pass = shared.items[item.slot];
    if (pass.num_stages < 0) return;
    // The next item is claimed when this one is nearly issued: no earlier, or an idle SM could not
    // have it; no later, or the stream would pause.
    std::uint64_t* const ending = &shared.item_ending[item.slot];
    if (pass.num_stages < Config::kClaimLeadStages) ptx::mbarrier_arrive(ending);
    if (threadIdx.x == 32 * Config::kKeyLoadWarp && pass.first_head == 0) {
      stamp(arguments, pass.index, &kernels::TimelineRecord::issued);
    }
    load_item(arguments, shared, map, ring, pass, ending, stage, preceding_ended);
    item.advance();
  }
}

}  // namespace headrace::cuda::sm90
