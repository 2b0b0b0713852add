#include "host/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "scheduler/share.h"

namespace headrace::host {
namespace {

using scheduler::PlanHeader;
using scheduler::TokenRange;
using scheduler::WorkItem;

constexpr std::size_t kMaxRows = 32;  // of the table

TokenRange tokens_of(const PlanHeader& header, const WorkItem& item,
                     std::span<const std::int32_t> seq_lens) {
  return scheduler::token_range(item, seq_lens[item.request], header.tile_tokens);
}

// The items of one request, for one KV head: all KV heads are cut alike.
struct Row {
  std::uint32_t request;
  std::size_t first_item;  // position in the queue
  std::uint32_t num_splits;
  std::int64_t shortest;  // tokens of an item
  std::int64_t longest;
};

// One row per request, in queue order.
std::vector<Row> rows_of(const PlanHeader& header, std::span<const WorkItem> items,
                         std::span<const std::int32_t> seq_lens) {
  constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> row_of(seq_lens.size(), kNone);
  std::vector<Row> rows;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const WorkItem& item = items[i];
    if (item.kv_head != 0) continue;
    const TokenRange range = tokens_of(header, item, seq_lens);
    const std::int64_t tokens = range.end - range.begin;
    std::uint32_t& row = row_of[item.request];
    if (row == kNone) {
      row = static_cast<std::uint32_t>(rows.size());
      rows.push_back({item.request, i, item.split_count, tokens, tokens});
    }
    rows[row].shortest = std::min(rows[row].shortest, tokens);
    rows[row].longest = std::max(rows[row].longest, tokens);
  }
  return rows;
}

}  // namespace

std::string plan_to_text(const PlanHeader& header, std::span<const WorkItem> items,
                         std::span<const std::int32_t> seq_lens) {
  const std::vector<Row> rows = rows_of(header, items, seq_lens);
  const auto num_split =
      std::count_if(rows.begin(), rows.end(), [](const Row& row) { return row.num_splits > 1; });
  std::int64_t num_tokens = 0;
  for (const std::int32_t len : seq_lens) num_tokens += std::max(len, 0);

  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{} requests, {} tokens, {} KV heads, {} workers{}\n", header.num_requests,
                 num_tokens, header.num_kv_heads, header.num_workers,
                 header.invariant != 0 ? ", invariant splits" : "");
  fmt::format_to(out, "{} items in tiles of {} tokens, {} requests split, {} partials\n",
                 header.num_items, header.tile_tokens, num_split, header.num_partials);
  if (rows.empty()) return text;

  fmt::format_to(out, "\n{:>8} {:>10} {:>7} {:>12} {:>12} {:>10}\n", "request", "tokens", "splits",
                 "shortest", "longest", "queued at");
  for (const Row& row : std::span(rows).first(std::min(rows.size(), kMaxRows))) {
    fmt::format_to(out, "{:>8} {:>10} {:>7} {:>12} {:>12} {:>10}\n", row.request,
                   std::max(seq_lens[row.request], 0), row.num_splits, row.shortest, row.longest,
                   row.first_item);
  }
  if (rows.size() > kMaxRows) {
    fmt::format_to(out, "... and {} requests that come later in the queue\n",
                   rows.size() - kMaxRows);
  }
  return text;
}

std::string plan_to_json(const PlanHeader& header, std::span<const WorkItem> items,
                         std::span<const std::int32_t> seq_lens) {
  nlohmann::ordered_json plan = {
      {"num_items", header.num_items},       {"num_requests", header.num_requests},
      {"num_kv_heads", header.num_kv_heads}, {"num_partials", header.num_partials},
      {"tile_tokens", header.tile_tokens},   {"num_workers", header.num_workers},
      {"invariant", header.invariant != 0},  {"items", nlohmann::ordered_json::array()},
  };
  for (const WorkItem& item : items) {
    const TokenRange range = tokens_of(header, item, seq_lens);
    const bool is_split = item.split_count > 1;
    plan["items"].push_back({
        {"request", item.request},
        {"kv_head", item.kv_head},
        {"token_begin", range.begin},
        {"token_end", range.end},
        {"split_index", item.split_index},
        {"split_count", item.split_count},
        {"slot", is_split ? nlohmann::ordered_json(partial_slot(item)) : nullptr},
    });
  }
  return plan.dump();
}

}  // namespace headrace::host
