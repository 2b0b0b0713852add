#include "host/planner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "scheduler/share.h"

namespace headrace::host {
namespace {

using scheduler::kMaxSplits;
using scheduler::kWholeShare;

// Invariant mode: pieces of at least so many tokens, and at most so many pieces.
constexpr std::int64_t kInvariantPieceTokens = 512;
constexpr std::int64_t kInvariantMaxSplits = 32;

// The pieces of the dynamic tail end at this part of a worker's share, or at so many times the cost
// of an item: finer ones cost more than they even out.
constexpr std::int64_t kTailResolution = 128;
constexpr std::int64_t kTailItemCosts = 8;

// Where a worker's share is worth less than so many shortest splits, the tail would be too coarse.
constexpr std::int64_t kExactShareItems = 64;
// Then so many deadlines are tried, in total with so many requests laid out.
constexpr std::int64_t kExactAttempts = 16;
constexpr std::int64_t kExactRequests = 384;

std::int64_t invariant_piece_tiles(const PlannerConfig& config) {
  return scheduler::num_tiles(kInvariantPieceTokens, config.tile_tokens);
}

// Splits of the longest request in invariant mode. Longer ones than planned for get no more.
std::int64_t invariant_max_splits(const PlannerConfig& config) {
  const std::int64_t longest = scheduler::num_tiles(config.max_seq_len, config.tile_tokens);
  const std::int64_t pieces = scheduler::num_tiles(longest, invariant_piece_tiles(config));
  const std::int64_t whole_items = std::int64_t{config.max_requests} * config.num_kv_heads;
  // All items, whole ones included in the capacity, are counted in 32 bits.
  const std::int64_t countable =
      std::numeric_limits<std::uint32_t>::max() / std::max<std::int64_t>(whole_items, 1) - 1;
  return std::max<std::int64_t>(std::min({pieces, kInvariantMaxSplits, countable}), 1);
}

}  // namespace

scheduler::PlanCapacity plan_capacity(const PlannerConfig& config) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  const std::uint64_t heads = config.num_kv_heads;
  const std::uint64_t whole_items = std::min(config.max_requests * heads, kMost);
  std::uint64_t partials;
  if (config.invariant) {
    const auto splits = static_cast<std::uint64_t>(invariant_max_splits(config));
    partials = splits > 1 ? whole_items * splits : 0;
  } else {
    // Slabs of one item per KV head. Every round of workers ends with a cut, two slabs; the dynamic
    // tail takes up to about five rounds of small ones.
    const std::uint64_t rounds =
        (config.num_workers + heads - 1) / std::max(heads, std::uint64_t{1});
    partials = heads * (8 * rounds + 32);
  }
  partials = std::min(partials, kMost - whole_items);
  return {static_cast<std::uint32_t>(whole_items + partials), static_cast<std::uint32_t>(partials)};
}

Planner::Planner(const PlannerConfig& config)
    : config_(config),
      capacity_(plan_capacity(config)),
      item_cost_(std::llround(config.cost.item_us / config.cost.token_us)),
      min_split_(config.tile_tokens *
                 std::max<std::int64_t>(
                     scheduler::num_tiles(config.cost.min_split_tokens, config.tile_tokens), 1)),
      longest_first_(config.max_requests),
      workers_(config.num_workers) {
  cuts_.reserve(capacity_.max_partials / config.num_kv_heads + 2);
}

void Planner::plan(std::span<const std::int32_t> seq_lens, scheduler::PlanHeader& header,
                   std::span<scheduler::WorkItem> items) noexcept {
  const Batch batch{longest_first_.sort(seq_lens, config_.tile_tokens), seq_lens};
  items_ = items.data();
  if (config_.invariant) {
    lay_out_invariant(batch);
  } else {
    lay_out_balanced(batch);
  }
  header = {
      .num_items = num_items_,
      .num_requests = static_cast<std::uint32_t>(seq_lens.size()),
      .num_kv_heads = config_.num_kv_heads,
      .num_partials = num_partials_,
      .tile_tokens = static_cast<std::uint32_t>(config_.tile_tokens),
      .num_workers = config_.num_workers,
      .invariant = config_.invariant,
      .reserved = {},
  };
}

void Planner::lay_out_invariant(const Batch& batch) noexcept {
  num_items_ = num_partials_ = 0;
  const std::int64_t max_splits = invariant_max_splits(config_);
  const std::int64_t piece_tiles = invariant_piece_tiles(config_);
  for (const std::uint32_t row : batch.rows) {
    const std::int64_t tiles = scheduler::num_tiles(batch.seq_lens[row], config_.tile_tokens);
    const std::int64_t pieces = scheduler::num_tiles(tiles, piece_tiles);
    const std::int64_t splits = std::clamp<std::int64_t>(pieces, 1, max_splits);
    cuts_.clear();
    for (std::int64_t split = 0; split < splits; ++split) {
      cuts_.push_back(scheduler::share_of_tile(split * tiles / splits, tiles));
    }
    cuts_.push_back(kWholeShare);
    write_items(row);
  }
}

void Planner::lay_out_balanced(const Batch& batch) noexcept {
  std::int64_t tokens = 0;
  for (const std::int32_t len : batch.seq_lens) tokens += std::max(len, 0);
  const auto num_requests = static_cast<std::int64_t>(batch.rows.size());
  // What every worker has to do if nothing is cut: no plan can end earlier.
  const double ideal = static_cast<double>(tokens + num_requests * item_cost_) *
                       config_.num_kv_heads / config_.num_workers;

  // When shares are small, look for an early deadline that leaves no tail.
  if (num_requests > 0 &&
      ideal < static_cast<double>(kExactShareItems * (min_split_ + item_cost_))) {
    const std::int64_t attempts = std::min(kExactAttempts, kExactRequests / num_requests);
    const double latest = std::max(ideal / 16, 4.0 * config_.tile_tokens);  // beyond the ideal
    for (std::int64_t attempt = 0; attempt < attempts; ++attempt) {
      const double late = latest * static_cast<double>(attempt) / static_cast<double>(attempts);
      const auto deadline = static_cast<std::int64_t>(ideal + late);
      lay_out(batch, tokens, deadline, deadline);
      if (workers_.makespan() <= deadline) return;
    }
  }
  lay_out(batch, tokens, static_cast<std::int64_t>(ideal),
          static_cast<std::int64_t>(ideal * (1 - config_.cost.dynamic_fraction)));
}

void Planner::lay_out(const Batch& batch, std::int64_t tokens, std::int64_t deadline,
                      std::int64_t cut_deadline) noexcept {
  num_items_ = num_partials_ = 0;
  tokens_left_ = tokens;
  deadline_ = deadline;
  cut_deadline_ = cut_deadline;
  in_tail_ = false;
  workers_.all_free();
  for (const std::uint32_t row : batch.rows) {
    cut(std::max(batch.seq_lens[row], 0));
    write_items(row);
  }
}

void Planner::cut(std::int64_t seq_len) noexcept {
  const std::int64_t tiles = scheduler::num_tiles(seq_len, config_.tile_tokens);
  cuts_.assign(1, 0);
  std::int64_t begin = 0;
  while (cuts_.back() < kWholeShare) {
    std::uint32_t share = kWholeShare;
    std::int64_t end = seq_len;
    const std::int64_t piece = next_piece(seq_len - begin);
    if (begin + piece < seq_len) {
      // The tile at which workers will find this boundary, for more than 65536 tiles not quite the
      // one asked for, and perhaps the end.
      share = scheduler::share_of_tile((begin + piece) / config_.tile_tokens, tiles);
      end = std::min(scheduler::tile_of_share(share, tiles) * config_.tile_tokens, seq_len);
    }
    workers_.take(end - begin + item_cost_, config_.num_kv_heads);
    tokens_left_ -= end - begin;
    cuts_.push_back(share);
    begin = end;
  }
}

std::int64_t Planner::next_piece(std::int64_t rest) noexcept {
  const std::uint32_t heads = config_.num_kv_heads;
  if (!in_tail_ && workers_.fits(rest + item_cost_, heads, deadline_)) return rest;
  if (rest < 2 * min_split_ || !may_cut()) return rest;
  if (!in_tail_) {
    const std::int64_t cost = workers_.largest_fit(heads, cut_deadline_, min_split_ + item_cost_);
    if (cost > 0) return std::min(cost - item_cost_, rest - min_split_);
    in_tail_ = true;
  }
  // What is left, spread over all workers: pieces shrink as the end comes near.
  const std::int64_t fair = tokens_left_ * heads / config_.num_workers;
  const std::int64_t finest = std::max(deadline_ / kTailResolution, kTailItemCosts * item_cost_);
  const std::int64_t piece = std::max({fair, min_split_, finest});
  return piece >= rest ? rest : std::min(piece, rest - min_split_);
}

bool Planner::may_cut() const noexcept {
  const std::uint64_t num_splits = cuts_.size() + 1;
  return num_splits <= kMaxSplits &&
         num_partials_ + num_splits * config_.num_kv_heads <= capacity_.max_partials;
}

void Planner::write_items(std::uint32_t row) noexcept {
  const auto num_splits = static_cast<std::uint32_t>(cuts_.size() - 1);
  const bool is_split = num_splits > 1;
  for (std::uint32_t split = 0; split < num_splits; ++split) {
    scheduler::WorkItem item{
        .request = static_cast<std::uint16_t>(row),
        .kv_head = 0,
        .share_begin = static_cast<std::uint16_t>(cuts_[split]),
        .share_last = static_cast<std::uint16_t>(cuts_[split + 1] - 1),
        .split_index = static_cast<std::uint16_t>(split),
        .split_count = static_cast<std::uint16_t>(num_splits),
        .first_slot = is_split ? num_partials_ : 0,
    };
    for (std::uint32_t head = 0; head < config_.num_kv_heads; ++head) {
      item.kv_head = static_cast<std::uint16_t>(head);
      items_[num_items_++] = item;
      if (is_split) item.first_slot += num_splits;
    }
  }
  if (is_split) num_partials_ += num_splits * config_.num_kv_heads;
}

}  // namespace headrace::host
