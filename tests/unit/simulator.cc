#include "tests/unit/simulator.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <utility>

#include "scheduler/share.h"

namespace headrace::tests {

double simulate_us(std::span<const scheduler::WorkItem> items,
                   std::span<const std::int32_t> seq_lens, const host::PlannerConfig& config,
                   std::span<const double> slowness) {
  using Worker = std::pair<double, std::size_t>;  // free at, index
  std::priority_queue<Worker, std::vector<Worker>, std::greater<>> workers;
  for (std::size_t worker = 0; worker < slowness.size(); ++worker) workers.push({0.0, worker});
  double makespan = 0;
  for (const scheduler::WorkItem& item : items) {
    auto [time, worker] = workers.top();
    workers.pop();
    const auto range = scheduler::token_range(item, seq_lens[item.request], config.tile_tokens);
    const auto tokens = static_cast<double>(range.end - range.begin);
    time += slowness[worker] * (tokens * config.cost.token_us + config.cost.item_us);
    makespan = std::max(makespan, time);
    workers.push({time, worker});
  }
  return makespan;
}

double ideal_us(std::span<const std::int32_t> seq_lens, const host::PlannerConfig& config) {
  double total = 0;
  for (const std::int32_t len : seq_lens) total += len * config.cost.token_us + config.cost.item_us;
  return total * config.num_kv_heads / config.num_workers;
}

}  // namespace headrace::tests
