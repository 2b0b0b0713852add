// Time stamps of items, on request: one uniform branch per event and item when off.
#pragma once

#include <cstdint>

#include "kernels/cuda/decode_kernel.h"

namespace headrace::cuda::sm90 {

__device__ __forceinline__ std::uint64_t global_time_ns() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

// Stamps one event of item `index`; called by one thread.
__device__ __forceinline__ void stamp(const DecodeArguments& arguments, std::uint32_t index,
                                      std::uint64_t kernels::TimelineRecord::*event) {
  kernels::TimelineRecord* const timeline = arguments.params.timeline;
  if (timeline != nullptr) timeline[index].*event = global_time_ns();
}

}  // namespace headrace::cuda::sm90
