// The kernel: one persistent block per SM. The schedule warp claims items, the load warps stream
// their pages, the math warps compute, each its own stages, and meet once per item; the merge warps
// do what is left once a split item is written.
#pragma once

#include "kernels/cuda/ptx/dependency.cuh"
#include "kernels/cuda/ptx/registers.cuh"
#include "kernels/cuda/sm90/epilogue.cuh"
#include "kernels/cuda/sm90/load.cuh"
#include "kernels/cuda/sm90/math.cuh"
#include "kernels/cuda/sm90/merge.cuh"
#include "kernels/cuda/sm90/schedule.cuh"

namespace headrace::cuda::sm90 {

template <class Config>
__device__ __forceinline__ void initialise(SharedStorage<Config>& shared) {
  if (threadIdx.x == 0) {
    for (int i = 0; i < Config::kStages; ++i) {
      ptx::mbarrier_init(&shared.stage_full[i], 2);
      ptx::mbarrier_init(&shared.stage_empty[i], 1);
    }
    for (int i = 0; i < Config::kItemSlots; ++i) {
      ptx::mbarrier_init(&shared.item_full[i], 1);
      ptx::mbarrier_init(&shared.item_queries[i], 1);
      ptx::mbarrier_init(&shared.item_ending[i], 64);
      ptx::mbarrier_init(&shared.item_done[i], Config::kMathWarps);
      ptx::mbarrier_init(&shared.item_empty[i], Config::kMathThreads + Config::kMergeThreads);
    }
    ptx::mbarrier_init(&shared.merge_full, 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
}

// Stages go to the math warps in turn, across items: warp w computes stages w, w + 8, w + 16, ...
// of the whole stream, so each warp can follow the ring without asking anybody.
template <class Config>
__device__ __forceinline__ void compute_items(const DecodeArguments& arguments,
                                              SharedStorage<Config>& shared) {
  const kernels::DecodeParams& params = arguments.params;
  const std::uint32_t warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const StageAddresses<Config> addresses(arguments.box_tokens);

  RingPosition<Config::kItemSlots> position;
  std::uint32_t slot = warp;       // in the ring, of this warp's next stage
  std::uint32_t parity = 0;        // of that slot
  std::int32_t next_stage = warp;  // this warp's next stage, counted from the item's first
  std::uint32_t first_warp = 0;    // the warp that has the item's first stage
  while (true) {
    ptx::mbarrier_wait(&shared.item_full[position.slot], position.parity);
    const ItemPass pass = shared.items[position.slot];
    if (pass.num_stages < 0) return;
    ptx::mbarrier_wait(&shared.item_queries[position.slot], position.parity);
    const int kv_head = pass.item.kv_head;
    const float key_scale = params.k_scale != nullptr ? params.k_scale[kv_head] : 1.0f;
    const float value_scale = params.v_scale != nullptr ? params.v_scale[kv_head] : 1.0f;
    QueryFragments<Config> queries;
    load_queries(shared, position.slot, params.sm_scale * key_scale * kLog2E, queries);
    ptx::mbarrier_arrive(&shared.item_empty[position.slot]);

    RunningResult<Config> result;
    result.clear();
    for (; next_stage < pass.num_stages; next_stage += Config::kMathWarps) {
      const int tokens_left = pass.token_end - pass.token_begin - next_stage * Config::kStageTokens;
      ptx::mbarrier_wait(&shared.stage_full[slot], parity);
      if (lane == 0 && next_stage == 0 && pass.first_head == 0) {
        stamp(arguments, pass.index, &kernels::TimelineRecord::first_byte);
      }
      if (lane == 0 && next_stage == pass.num_stages - 1) {
        stamp(arguments, pass.index, &kernels::TimelineRecord::last_byte);
      }
      attend_stage(addresses, shared, slot, tokens_left, queries, result);
      __syncwarp();
      if (lane == 0) ptx::mbarrier_arrive(&shared.stage_empty[slot]);
      slot += Config::kMathWarps;
      if (slot >= Config::kStages) {
        slot = warp;
        parity ^= 1;
      }
    }
    finish_pass(arguments, shared, pass, first_warp, value_scale, result);
    __syncwarp();
    if (lane == 0) ptx::mbarrier_arrive(&shared.item_done[position.slot]);
    position.advance();
    next_stage -= pass.num_stages;
    first_warp = (first_warp + pass.num_stages) % Config::kMathWarps;
  }
}

template <class Config>
__global__ void __launch_bounds__(Config::kThreads, Config::kBlocksPerSm)
    decode(const __grid_constant__ DecodeArguments arguments) {
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<SharedStorage<Config>*>(shared_bytes);
  const int warp = threadIdx.x / 32;
  if (warp == Config::kKeyLoadWarp) ptx::prefetch_tensor_map(&arguments.k_map);
  if (warp == Config::kValueLoadWarp) ptx::prefetch_tensor_map(&arguments.v_map);
  // At once: what this block still occupies keeps the next grid's blocks out until it ends.
  if (threadIdx.x == 0) ptx::allow_next_grid();
  initialise(shared);
  if (warp < Config::kMathWarps) {
    ptx::grow_registers<Config::kMathRegisters>();
    compute_items(arguments, shared);
  } else {
    ptx::shrink_registers<Config::kOtherRegisters>();
    if (warp == Config::kScheduleWarp) schedule_items(arguments, shared);
    if (warp == Config::kKeyLoadWarp) load_pages(arguments, shared, arguments.k_map, shared.k);
    if (warp == Config::kValueLoadWarp) load_pages(arguments, shared, arguments.v_map, shared.v);
    if (warp >= Config::kFirstMergeWarp) merge_items(arguments, shared);
  }
}

}  // namespace headrace::cuda::sm90
