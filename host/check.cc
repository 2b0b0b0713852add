#include "host/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "scheduler/share.h"

namespace headrace::host {
namespace {

using scheduler::PlanCapacity;
using scheduler::PlanHeader;
using scheduler::WorkItem;

std::string check_header(const PlanHeader& header, std::size_t num_items,
                         const PlanCapacity& capacity, std::size_t num_requests) {
  if (header.num_items != num_items) {
    return fmt::format("the header counts {} items, there are {}", header.num_items, num_items);
  }
  if (header.num_items > capacity.max_items) {
    return fmt::format("{} items, capacity is {}", header.num_items, capacity.max_items);
  }
  if (header.num_partials > capacity.max_partials) {
    return fmt::format("{} partials, capacity is {}", header.num_partials, capacity.max_partials);
  }
  if (header.num_requests != num_requests) {
    return fmt::format("the header counts {} requests, there are {} lengths", header.num_requests,
                       num_requests);
  }
  if (header.num_requests > scheduler::kMaxRequests) {
    return fmt::format("{} requests, at most {} can be named", header.num_requests,
                       scheduler::kMaxRequests);
  }
  if (header.num_kv_heads == 0 || header.num_kv_heads > scheduler::kMaxKvHeads) {
    return fmt::format("{} KV heads, 1 to {} can be named", header.num_kv_heads,
                       scheduler::kMaxKvHeads);
  }
  constexpr std::uint32_t kMaxTile = std::numeric_limits<std::int32_t>::max();
  if (header.tile_tokens == 0 || header.tile_tokens > kMaxTile) {
    return fmt::format("tiles of {} tokens", header.tile_tokens);
  }
  if (header.num_workers == 0) return "balanced for 0 workers";
  if (header.invariant > 1) return fmt::format("invariant is {}", header.invariant);
  return {};
}

std::string check_bounds(const PlanHeader& header, std::span<const WorkItem> items) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].request >= header.num_requests) {
      return fmt::format("item {} is of request {}, there are {}", i, items[i].request,
                         header.num_requests);
    }
    if (items[i].kv_head >= header.num_kv_heads) {
      return fmt::format("item {} is of KV head {}, there are {}", i, items[i].kv_head,
                         header.num_kv_heads);
    }
  }
  return {};
}

// Items by request, KV head and split index.
std::vector<WorkItem> in_token_order(std::span<const WorkItem> items) {
  std::vector<WorkItem> ordered(items.begin(), items.end());
  const auto key = [](const WorkItem& item) {
    return std::uint64_t{item.request} << 32 | std::uint64_t{item.kv_head} << 16 | item.split_index;
  };
  std::sort(ordered.begin(), ordered.end(),
            [&](const WorkItem& a, const WorkItem& b) { return key(a) < key(b); });
  return ordered;
}

// `splits` are all items of one request and KV head, by split index.
std::string check_cover(std::span<const WorkItem> splits, std::int64_t seq_len,
                        std::int64_t tile_tokens) {
  std::uint32_t share = 0;
  std::int64_t token = 0;
  for (std::size_t i = 0; i < splits.size(); ++i) {
    const WorkItem& item = splits[i];
    if (item.split_index != i) {
      return fmt::format("there is no split {} before split {}", i, item.split_index);
    }
    if (item.split_count != splits.size()) {
      return fmt::format("split {} counts {} splits, there are {}", i, item.split_count,
                         splits.size());
    }
    const scheduler::TokenRange range = scheduler::token_range(item, seq_len, tile_tokens);
    if (range.begin != token || range.end < range.begin) {
      return fmt::format("split {} covers tokens {} to {}, it should begin at {}", i, range.begin,
                         range.end, token);
    }
    if (item.share_begin != share || item.share_last < item.share_begin) {
      return fmt::format("split {} covers shares {} to {} inclusive, it should begin at {}", i,
                         item.share_begin, item.share_last, share);
    }
    token = range.end;
    share = scheduler::share_end(item);
  }
  if (token != std::max<std::int64_t>(seq_len, 0)) {
    return fmt::format("tokens {} to {} are covered by no split", token, seq_len);
  }
  if (share != scheduler::kWholeShare) return fmt::format("shares from {} are missing", share);
  return {};
}

// Marks the slots of `splits` as used.
std::string check_slots(std::span<const WorkItem> splits, std::vector<bool>& used) {
  if (splits.size() == 1) return {};
  const std::uint32_t first = splits[0].first_slot;
  for (const WorkItem& item : splits) {
    if (item.first_slot != first) {
      return fmt::format("split {} has first slot {}, split 0 has {}", item.split_index,
                         item.first_slot, first);
    }
    const std::size_t slot = std::size_t{first} + item.split_index;
    if (slot >= used.size()) {
      return fmt::format("split {} has slot {}, there are {}", item.split_index, slot, used.size());
    }
    if (used[slot]) return fmt::format("slot {} is used twice", slot);
    used[slot] = true;
  }
  return {};
}

}  // namespace

std::string check_plan(const PlanHeader& header, std::span<const WorkItem> items,
                       const PlanCapacity& capacity, std::span<const std::int32_t> seq_lens) {
  std::string defect = check_header(header, items.size(), capacity, seq_lens.size());
  if (defect.empty()) defect = check_bounds(header, items);
  if (!defect.empty()) return defect;

  const std::vector<WorkItem> ordered = in_token_order(items);
  std::vector<bool> used(header.num_partials);
  auto next = ordered.begin();
  for (std::uint32_t request = 0; request < header.num_requests; ++request) {
    for (std::uint32_t head = 0; head < header.num_kv_heads; ++head) {
      const auto begin = next;
      next = std::find_if(begin, ordered.end(), [&](const WorkItem& item) {
        return item.request != request || item.kv_head != head;
      });
      if (begin == next) return fmt::format("request {}, KV head {}: no item", request, head);
      const std::span splits(begin, next);
      defect = check_cover(splits, seq_lens[request], header.tile_tokens);
      if (defect.empty()) defect = check_slots(splits, used);
      if (!defect.empty()) return fmt::format("request {}, KV head {}: {}", request, head, defect);
    }
  }
  return {};
}

}  // namespace headrace::host
