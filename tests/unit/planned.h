// A plan made by the planner, in memory that shows whether the planner wrote beyond its capacity.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "host/planner.h"
#include "tests/catch.h"

namespace headrace::tests {

struct Planned {
  scheduler::PlanHeader header;
  std::vector<scheduler::WorkItem> items;
};

inline Planned plan_with(host::Planner& planner, std::span<const std::int32_t> seq_lens) {
  constexpr std::size_t kGuardItems = 8;
  const std::size_t max_items = planner.capacity().max_items;
  Planned planned;
  planned.items.resize(max_items + kGuardItems);
  // Garbage in the caller's memory must not matter.
  std::memset(&planned.header, 0xFF, sizeof(planned.header));
  std::memset(static_cast<void*>(planned.items.data()), 0xFF,
              planned.items.size() * sizeof(scheduler::WorkItem));
  planner.plan(seq_lens, planned.header, std::span(planned.items).first(max_items));

  const auto* guard = reinterpret_cast<const unsigned char*>(planned.items.data() + max_items);
  REQUIRE(std::all_of(guard, guard + kGuardItems * sizeof(scheduler::WorkItem),
                      [](unsigned char byte) { return byte == 0xFF; }));
  REQUIRE(planned.header.num_items <= max_items);
  planned.items.resize(planned.header.num_items);
  return planned;
}

inline Planned make_plan(const host::PlannerConfig& config,
                         std::span<const std::int32_t> seq_lens) {
  host::Planner planner(config);
  return plan_with(planner, seq_lens);
}

}  // namespace headrace::tests
