// Every plan is right: proved for the planned lengths and for others, within capacity, repeatable.
#include "host/planner.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "host/check.h"
#include "scheduler/share.h"
#include "tests/catch.h"
#include "tests/support/random.h"
#include "tests/unit/planned.h"

namespace headrace::tests {
namespace {

using host::PlannerConfig;
using scheduler::WorkItem;

constexpr std::int32_t kLongest = std::numeric_limits<std::int32_t>::max();

PlannerConfig config_for(std::uint32_t max_requests, std::uint32_t num_kv_heads,
                         std::uint32_t num_workers) {
  return {.max_requests = max_requests,
          .num_kv_heads = num_kv_heads,
          .num_workers = num_workers,
          .max_seq_len = 131072,
          .cost = {}};
}

PlannerConfig random_config(Random& random) {
  PlannerConfig config = config_for(static_cast<std::uint32_t>(random.between(1, 100)),
                                    random.pick<std::uint32_t>({1, 2, 3, 4, 8, 17, 32}),
                                    static_cast<std::uint32_t>(random.between(1, 300)));
  config.max_seq_len = random.pick({1, 100, 4096, 131072, kLongest});
  config.tile_tokens = random.pick({1, 16, 64, 100, 128});
  config.invariant = random.one_in(3);
  config.cost.token_us = random.pick({0.0001, 0.015, 1.0});
  config.cost.item_us = random.pick({0.0, 0.5, 20.0});
  config.cost.min_split_tokens = random.pick({0, 1, 128, 100000});
  config.cost.dynamic_fraction = random.pick({0.0, 0.05, 0.5, 0.99});
  return config;
}

std::vector<std::int32_t> random_lens(Random& random, std::int64_t num_requests) {
  std::vector<std::int32_t> lens(static_cast<std::size_t>(num_requests));
  const std::int64_t highest = random.pick<std::int64_t>({0, 1, 200, 5000, 200000, kLongest});
  for (std::int32_t& len : lens) {
    len = static_cast<std::int32_t>(random.between(0, highest));
    if (random.one_in(20)) len = random.pick({-1, 0, 1, 64, 131072, kLongest});
  }
  return lens;
}

void require_proved(const Planned& planned, const PlannerConfig& config,
                    const std::vector<std::int32_t>& seq_lens) {
  REQUIRE(host::check_plan(planned.header, planned.items, host::plan_capacity(config), seq_lens) ==
          "");
}

// The splits of KV head 0 of `request`, without their slots.
std::vector<WorkItem> splits_of(const Planned& planned, std::uint32_t request) {
  std::vector<WorkItem> splits;
  for (WorkItem item : planned.items) {
    if (item.request != request || item.kv_head != 0) continue;
    item.request = 0;
    item.first_slot = 0;
    splits.push_back(item);
  }
  return splits;
}

bool same_items(const std::vector<WorkItem>& a, const std::vector<WorkItem>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(WorkItem)) == 0);
}

}  // namespace

TEST_CASE("random plans are right for the planned and for other lengths") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const PlannerConfig config = random_config(random);
    host::Planner planner(config);
    for (int plan = 0; plan < 3; ++plan) {
      const std::int64_t num_requests = random.between(0, config.max_requests);
      const auto seq_lens = random_lens(random, num_requests);
      const Planned planned = plan_with(planner, seq_lens);
      require_proved(planned, config, seq_lens);
      require_proved(planned, config, random_lens(random, num_requests));
      for (const std::int32_t len : {0, 1, kLongest}) {
        require_proved(planned, config,
                       std::vector<std::int32_t>(static_cast<std::size_t>(num_requests), len));
      }
    }
  }
}

TEST_CASE("a plan depends on nothing but its input") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const PlannerConfig config = random_config(random);
    const auto seq_lens = random_lens(random, config.max_requests);
    host::Planner used(config);
    plan_with(used, random_lens(random, config.max_requests));
    const Planned again = plan_with(used, seq_lens);
    const Planned fresh = make_plan(config, seq_lens);
    REQUIRE(std::memcmp(&again.header, &fresh.header, sizeof(fresh.header)) == 0);
    REQUIRE(same_items(again.items, fresh.items));
  }
}

TEST_CASE("batches with empty requests") {
  const PlannerConfig config = config_for(8, 4, 132);
  for (const std::vector<std::int32_t>& seq_lens :
       {std::vector<std::int32_t>{}, std::vector<std::int32_t>(8, 0),
        std::vector<std::int32_t>{0, 0, 5, 0, 1, 0, 4096, 0}}) {
    const Planned planned = make_plan(config, seq_lens);
    require_proved(planned, config, seq_lens);
    const auto num_empty = std::count(seq_lens.begin(), seq_lens.end(), 0);
    const auto num_empty_items =
        std::count_if(planned.items.begin(), planned.items.end(),
                      [&](const WorkItem& item) { return seq_lens[item.request] == 0; });
    REQUIRE(num_empty_items == 4 * num_empty);
  }
}

TEST_CASE("extreme capacities") {
  SECTION("as many requests as can be named") {
    const PlannerConfig config = config_for(scheduler::kMaxRequests, 1, 132);
    std::vector<std::int32_t> seq_lens(scheduler::kMaxRequests, 17);
    seq_lens[40000] = 1000000;
    require_proved(make_plan(config, seq_lens), config, seq_lens);
  }
  SECTION("as many KV heads as can be named") {
    const PlannerConfig config = config_for(2, scheduler::kMaxKvHeads, 132);
    const std::vector<std::int32_t> seq_lens = {100, 5000};
    require_proved(make_plan(config, seq_lens), config, seq_lens);
  }
  SECTION("the longest requests") {
    for (const bool invariant : {false, true}) {
      for (const std::uint32_t workers : {1u, 132u, 5000u}) {
        PlannerConfig config = config_for(3, 2, workers);
        config.invariant = invariant;
        const std::vector<std::int32_t> seq_lens = {kLongest, 1, kLongest};
        const Planned planned = make_plan(config, seq_lens);
        require_proved(planned, config, seq_lens);
        REQUIRE(planned.items.size() < 12 * (workers + 32));
      }
    }
  }
  SECTION("invariant capacities hold all splits of all requests") {
    for (const std::uint32_t heads : {8u, 128u, 20000u, 23000u, 65535u}) {
      PlannerConfig config = config_for(scheduler::kMaxRequests, heads, 132);
      config.invariant = true;
      REQUIRE(host::plan_capacity(config).max_partials % (65536u * heads) == 0);
    }
  }
  SECTION("more items than 32 bits count are not promised") {
    for (const bool invariant : {false, true}) {
      PlannerConfig config = config_for(scheduler::kMaxRequests, 65535, 132);
      config.invariant = invariant;
      const scheduler::PlanCapacity capacity = host::plan_capacity(config);
      REQUIRE(capacity.max_items >= 65536u * 65535u);
      REQUIRE(capacity.max_items - 65536u * 65535u >= capacity.max_partials);
    }
  }
}

TEST_CASE("a plan that would need more partials than there are stops cutting") {
  PlannerConfig config = config_for(500, 1, 100);
  config.cost = {.token_us = 1, .item_us = 0, .min_split_tokens = 1, .dynamic_fraction = 0.99};
  config.tile_tokens = 1;
  // The first request ends the static part at once. Of the others, each is a little longer than
  // the piece that the tail cuts when its turn comes, so that each gives two partials.
  std::vector<std::int32_t> seq_lens = {250000};
  double tokens_left = 9750000;
  while (seq_lens.size() < 500) {
    seq_lens.push_back(static_cast<std::int32_t>(1.05 * tokens_left / config.num_workers));
    tokens_left -= seq_lens.back();
  }
  const Planned planned = make_plan(config, seq_lens);
  require_proved(planned, config, seq_lens);
  const std::uint32_t max_partials = host::plan_capacity(config).max_partials;
  CAPTURE(planned.header.num_partials, max_partials);
  REQUIRE(planned.header.num_partials > max_partials - 2);
}

TEST_CASE("capacity depends on capacities only") {
  const scheduler::PlanCapacity capacity = host::plan_capacity(config_for(256, 8, 132));
  REQUIRE(capacity.max_partials == 8 * (8 * 17 + 32));
  REQUIRE(capacity.max_items == 256 * 8 + capacity.max_partials);
}

TEST_CASE("requests that fill the workers evenly are not split") {
  const std::vector<std::int32_t> seq_lens(33, 8192);
  const Planned planned = make_plan(config_for(33, 4, 132), seq_lens);
  REQUIRE(planned.header.num_items == 132);
  REQUIRE(planned.header.num_partials == 0);
}

TEST_CASE("no split is shorter than the shortest allowed") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const PlannerConfig config = config_for(64, random.pick({1u, 4u, 8u}), 132);
    std::vector<std::int32_t> seq_lens(static_cast<std::size_t>(random.between(1, 64)));
    for (std::int32_t& len : seq_lens) len = static_cast<std::int32_t>(random.between(0, 30000));
    for (const WorkItem& item : make_plan(config, seq_lens).items) {
      if (item.split_count == 1) continue;
      const auto range = scheduler::token_range(item, seq_lens[item.request], config.tile_tokens);
      REQUIRE(range.end - range.begin >= config.cost.min_split_tokens);
    }
  }
}

TEST_CASE("the queue starts with the longest request and keeps KV heads together") {
  const std::vector<std::int32_t> seq_lens = {10, 900, 70000, 3, 2000};
  const Planned planned = make_plan(config_for(5, 8, 132), seq_lens);
  REQUIRE(planned.items[0].request == 2);
  REQUIRE(planned.items.back().request == 3);
  for (std::size_t i = 0; i < planned.items.size(); ++i) {
    REQUIRE(planned.items[i].kv_head == i % 8);
    REQUIRE(planned.items[i].share_begin == planned.items[i / 8 * 8].share_begin);
  }
}

TEST_CASE("invariant splits are the same alone and in any batch, order and number of workers") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    PlannerConfig alone_config = config_for(1, 8, 132);
    alone_config.invariant = true;
    const auto len = static_cast<std::int32_t>(random.between(0, 1 << random.between(0, 17)));
    const auto alone = splits_of(make_plan(alone_config, std::vector{len}), 0);

    auto batch_config = config_for(256, random.pick({1u, 8u, 32u}),
                                   static_cast<std::uint32_t>(random.between(1, 300)));
    batch_config.invariant = true;
    for (const std::int64_t num_requests : {2, 32, 33, 255}) {
      auto seq_lens = random_lens(random, num_requests);
      const auto row = static_cast<std::size_t>(random.between(0, num_requests - 1));
      seq_lens[row] = len;
      const Planned planned = make_plan(batch_config, seq_lens);
      require_proved(planned, batch_config, seq_lens);
      REQUIRE(same_items(splits_of(planned, static_cast<std::uint32_t>(row)), alone));
    }
  }
}

TEST_CASE("invariant splits by length") {
  PlannerConfig config = config_for(1, 1, 132);
  config.invariant = true;
  const auto num_splits = [&](std::int32_t len) {
    return make_plan(config, std::vector{len}).items.size();
  };
  REQUIRE(num_splits(0) == 1);
  REQUIRE(num_splits(512) == 1);
  REQUIRE(num_splits(513) == 2);
  REQUIRE(num_splits(8192) == 16);
  REQUIRE(num_splits(131072) == 32);
  REQUIRE(num_splits(kLongest) == 32);
  config.max_seq_len = 2000;
  REQUIRE(num_splits(2000) == 4);
  REQUIRE(num_splits(8192) == 4);
  config.max_seq_len = 512;
  REQUIRE(num_splits(8192) == 1);
  REQUIRE(host::plan_capacity(config).max_partials == 0);
}

}  // namespace headrace::tests
