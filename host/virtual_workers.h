// The workers as the queue sees them: whoever is free first takes the next item. The planner plays
// the run through with these before it happens.
#pragma once

#include <cstdint>
#include <vector>

namespace headrace::host {

// Times and costs are in the planner's unit, one token of one KV head.
class VirtualWorkers {
 public:
  explicit VirtualWorkers(std::uint32_t num_workers);

  void all_free() noexcept;

  // Whether `count` items of `cost` each, taken by the earliest free workers in turn, all end by
  // `deadline`.
  bool fits(std::int64_t cost, std::uint32_t count, std::int64_t deadline) const noexcept;

  // The largest cost for which fits() holds, or 0 if that is below `least`.
  std::int64_t largest_fit(std::uint32_t count, std::int64_t deadline,
                           std::int64_t least) const noexcept;

  // The earliest free workers take `count` items of `cost` each.
  void take(std::int64_t cost, std::uint32_t count) noexcept;

  std::int64_t makespan() const noexcept { return groups_.front().free_at; }

 private:
  // Workers that become free together. There are few groups, because the KV heads of a request are
  // items of equal cost.
  struct Group {
    std::int64_t free_at;
    std::uint32_t num_workers;
  };

  std::uint32_t num_workers_;
  std::vector<Group> groups_;  // strictly descending free_at: the earliest is at the back
};

}  // namespace headrace::host
