// The record that planner, queue and workers share.
#pragma once

#include <cstdint>

#include "scheduler/host_device.h"

namespace headrace::scheduler {

// Shares are in units of 1/65536 of a request's tokens.
inline constexpr std::uint32_t kWholeShare = 1u << 16;

inline constexpr std::uint32_t kMaxRequests = 1u << 16;
inline constexpr std::uint32_t kMaxKvHeads = 1u << 16;
inline constexpr std::uint32_t kMaxSplits = (1u << 16) - 1;

// "Request 17, KV head 3, from 1/4 to 1/2 of its tokens." It names no token: the worker reads the
// live length and turns the share into a token range (share.h), so a plan made for other lengths is
// less balanced, never wrong.
struct WorkItem {
  std::uint16_t request;      // row of seq_lens, block_table, q and out
  std::uint16_t kv_head;      // serves query heads [kv_head * group, (kv_head + 1) * group)
  std::uint16_t share_begin;  // first 1/65536 of the tokens
  std::uint16_t share_last;   // last 1/65536, inclusive, so that the whole request fits 16 bits
  std::uint16_t split_index;  // position in the merge order of this request and KV head
  std::uint16_t split_count;  // 1: the item is the whole request and writes the output itself
  std::uint32_t first_slot;  // partial slot of split 0, and index of the arrival counter they share
};
static_assert(sizeof(WorkItem) == 16, "items are read as one 16-byte load");

HEADRACE_HOST_DEVICE std::uint32_t share_end(const WorkItem& item) {
  return std::uint32_t{item.share_last} + 1;
}

// Where this item's unnormalised result goes when the request is split.
HEADRACE_HOST_DEVICE std::uint32_t partial_slot(const WorkItem& item) {
  return item.first_slot + item.split_index;
}

}  // namespace headrace::scheduler
