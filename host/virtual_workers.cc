#include "host/virtual_workers.h"

#include <algorithm>

namespace headrace::host {

VirtualWorkers::VirtualWorkers(std::uint32_t num_workers) : num_workers_(num_workers) {
  groups_.reserve(num_workers);  // each group has a worker, so it never grows beyond
  all_free();
}

void VirtualWorkers::all_free() noexcept { groups_.assign(1, {0, num_workers_}); }

bool VirtualWorkers::fits(std::int64_t cost, std::uint32_t count,
                          std::int64_t deadline) const noexcept {
  std::int64_t left = count;
  for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) {
    const std::int64_t room = deadline - group->free_at;
    if (room < cost) return false;
    if (group->num_workers >= left || room >= cost * left) return true;
    left -= group->num_workers * (room / cost);
    if (left <= 0) return true;
  }
  return false;
}

std::int64_t VirtualWorkers::largest_fit(std::uint32_t count, std::int64_t deadline,
                                         std::int64_t least) const noexcept {
  // A worker with room r holds k items of any cost up to r / k. So walk down the costs at which one
  // more item fits somewhere, until `count` items do.
  std::int64_t cost = deadline - groups_.back().free_at;
  if (groups_.back().num_workers >= count) return cost >= least ? cost : 0;
  while (cost >= least && cost > 0) {
    std::int64_t num_fitting = 0;
    std::int64_t next = 0;
    for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) {
      const std::int64_t room = deadline - group->free_at;
      if (room < least) break;
      const std::int64_t per_worker = std::min<std::int64_t>(room / cost, count);
      num_fitting += group->num_workers * per_worker;
      next = std::max(next, room / (per_worker + 1));
    }
    if (num_fitting >= count) return cost;
    cost = next;
  }
  return 0;
}

void VirtualWorkers::take(std::int64_t cost, std::uint32_t count) noexcept {
  while (count > 0) {
    Group& earliest = groups_.back();
    const std::uint32_t taken = std::min(count, earliest.num_workers);
    const std::int64_t free_at = earliest.free_at + cost;
    count -= taken;
    earliest.num_workers -= taken;
    if (earliest.num_workers == 0) groups_.pop_back();
    const auto place = std::lower_bound(
        groups_.begin(), groups_.end(), free_at,
        [](const Group& group, std::int64_t time) { return group.free_at > time; });
    if (place != groups_.end() && place->free_at == free_at) {
      place->num_workers += taken;
    } else {
      groups_.insert(place, {free_at, taken});
    }
  }
}

}  // namespace headrace::host
