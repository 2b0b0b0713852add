// The planner: lengths in, queue contents out. Pure host code, no CUDA, no threads, and no
// allocation after construction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/plan_layout.h"
#include "scheduler/work_item.h"

namespace headrace::host {

// What a worker pays. Only the ratios matter; they are measured per device and dtype.
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
  std::int32_t max_seq_len =
      0;  // longest request that will be planned; longer ones are legal, less balanced
  std::int32_t tile_tokens = 64;  // share boundaries fall on multiples of this
  bool invariant = false;         // cut each request by its own length alone
  CostModel cost;
};

// Upper bounds for any plan of this configuration; a function of capacities, never of lengths.
scheduler::PlanCapacity plan_capacity(const PlannerConfig& config);

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
  PlannerConfig config_;
  scheduler::PlanCapacity capacity_;
};

}  // namespace headrace::host
