// The planner: lengths in, queue contents out. Pure host code, no CUDA, no threads, and no
// allocation after construction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "host/longest_first.h"
#include "host/virtual_workers.h"
#include "scheduler/plan_layout.h"
#include "scheduler/work_item.h"

namespace headrace::host {

// What a worker pays. Only the ratios matter; they are measured per device and dtype.
// token_us is above 0, dynamic_fraction is in [0, 1).
struct CostModel {
  double token_us = 0.015;  // one token of one KV head, K and V
  double item_us = 0.5;     // claim, table look-up, prologue and partial result of one item
  std::int32_t min_split_tokens = 128;  // a split shorter than this never pays
  double dynamic_fraction = 0.05;  // share of the work cut small, for dynamic claims at the end
};

struct PlannerConfig {
  std::uint32_t max_requests = 0;  // at most scheduler::kMaxRequests
  std::uint32_t num_kv_heads = 0;  // at most scheduler::kMaxKvHeads
  std::uint32_t num_workers = 0;   // workers to balance for
  std::int32_t max_seq_len = 0;    // tokens; longer requests are legal, less balanced
  std::int32_t tile_tokens = 64;   // share boundaries fall on multiples of this
  bool invariant = false;          // cut each request by its own length alone (see Planner)
  CostModel cost;
};

// Upper bounds for any plan of this configuration; a function of capacities, never of lengths.
// Items are counted in 32 bits: max_requests * num_kv_heads must be below 2^32.
scheduler::PlanCapacity plan_capacity(const PlannerConfig& config);

// How a plan is made. Requests stand in a line, longest first; all KV heads of a request are cut at
// the same places, and lie next to each other in the queue. The planner plays the run through, item
// by item, with workers that take the next item when they are free. A request that can end by the
// deadline, which is when all workers would end if the work were spread evenly, stays whole. Of any
// other, a piece is cut that keeps the earliest free workers busy until shortly before, and the
// rest stands next in the line. When no worker has room for the shortest split, what is left
// (CostModel::dynamic_fraction of the work) is cut into smaller and smaller pieces that even out
// what the cost model did not foresee.
//
// In invariant mode a request is cut into equal pieces: ceil(tokens / 512) of them, both rounded to
// tiles, but at most 32. That is a function of its length alone for lengths up to max_seq_len;
// longer requests get no more pieces than one of max_seq_len.
class Planner {
 public:
  // Allocates all scratch memory. The configuration must be valid (the runtime checks it).
  explicit Planner(const PlannerConfig& config);

  // Writes the queue for seq_lens [num_requests <= max_requests] (tokens; below 0 counts as 0).
  // `items` holds plan_capacity().max_items. Deterministic; never exceeds the capacity.
  void plan(std::span<const std::int32_t> seq_lens, scheduler::PlanHeader& header,
            std::span<scheduler::WorkItem> items) noexcept;

  const PlannerConfig& config() const { return config_; }
  const scheduler::PlanCapacity& capacity() const { return capacity_; }

 private:
  struct Batch {
    std::span<const std::uint32_t> rows;  // longest first
    std::span<const std::int32_t> seq_lens;
  };

  void lay_out_invariant(const Batch& batch) noexcept;
  void lay_out_balanced(const Batch& batch) noexcept;
  // Plays the run through: whole requests end by `deadline`, cut pieces by `cut_deadline`, and what
  // then is left is the tail. `tokens` is the sum of the lengths.
  void lay_out(const Batch& batch, std::int64_t tokens, std::int64_t deadline,
               std::int64_t cut_deadline) noexcept;
  // Fills cuts_ for the next request in the line, and lets the workers take it.
  void cut(std::int64_t seq_len) noexcept;
  // Tokens to take next from a request that has `rest` left.
  std::int64_t next_piece(std::int64_t rest) noexcept;
  // Whether the capacity allows one more cut in the current request.
  bool may_cut() const noexcept;
  // Writes the items of the request that cuts_ describes.
  void write_items(std::uint32_t row) noexcept;

  PlannerConfig config_;
  scheduler::PlanCapacity capacity_;
  std::int64_t item_cost_;  // what an item costs beyond its tokens, in tokens
  std::int64_t min_split_;  // tokens, a multiple of the tile

  LongestFirst longest_first_;
  VirtualWorkers workers_;  // one unit of time is one token of one KV head

  // The plan in the making.
  std::int64_t deadline_ = 0;
  std::int64_t cut_deadline_ = 0;
  std::int64_t tokens_left_ = 0;  // of each KV head, taken by nobody yet
  bool in_tail_ = false;
  std::vector<std::uint32_t> cuts_;  // of one request: 0, the shares where it is cut, kWholeShare
  scheduler::WorkItem* items_ = nullptr;
  std::uint32_t num_items_ = 0;
  std::uint32_t num_partials_ = 0;
};

}  // namespace headrace::host
