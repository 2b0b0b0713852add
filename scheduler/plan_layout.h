// How a plan lies in the caller's buffer: control words, then header, then items. All offsets
// depend on capacities only, so a plan made anew is read at the same addresses by a captured graph.
#pragma once

#include <cstddef>
#include <cstdint>

#include "scheduler/host_device.h"
#include "scheduler/queue.h"
#include "scheduler/work_item.h"

namespace headrace::scheduler {

inline constexpr std::size_t kPlanAlignment = 128;

struct PlanHeader {
  std::uint32_t num_items;
  std::uint32_t
      num_requests;  // rows the plan covers: every one of them has items, length 0 included
  std::uint32_t num_kv_heads;
  std::uint32_t num_partials;  // slots used, at most PlanCapacity::max_partials
  std::uint32_t tile_tokens;   // share boundaries fall on multiples of this
  std::uint32_t
      num_workers;  // the number of workers the plan was balanced for; any number may run it
  std::uint32_t invariant;  // 1: splits depend on the request's own length alone
  std::uint32_t reserved[25];
};
static_assert(sizeof(PlanHeader) == kPlanAlignment);

struct PlanCapacity {
  std::uint32_t max_items;
  std::uint32_t max_partials;
};

// Byte offsets from the start of the plan buffer. Header and items are adjacent: a device plan is
// uploaded as one copy that starts at header_offset and leaves the control words alone.
struct PlanLayout {
  std::size_t header_offset;
  std::size_t items_offset;
  std::size_t total_bytes;
};

HEADRACE_HOST_DEVICE PlanLayout plan_layout(const PlanCapacity& capacity) {
  const std::size_t control_bytes = control_words(capacity.max_partials) * sizeof(std::uint32_t);
  const std::size_t header = (control_bytes + kPlanAlignment - 1) / kPlanAlignment * kPlanAlignment;
  const std::size_t items = header + sizeof(PlanHeader);
  return {header, items, items + std::size_t{capacity.max_items} * sizeof(WorkItem)};
}

// What a worker needs to run a plan.
struct PlanView {
  const PlanHeader* header;
  const WorkItem* items;
  Control control;
};

HEADRACE_HOST_DEVICE PlanView plan_view(void* buffer, const PlanLayout& layout) {
  auto* bytes = static_cast<unsigned char*>(buffer);
  return {reinterpret_cast<const PlanHeader*>(bytes + layout.header_offset),
          reinterpret_cast<const WorkItem*>(bytes + layout.items_offset),
          control_view(reinterpret_cast<std::uint32_t*>(bytes))};
}

}  // namespace headrace::scheduler
