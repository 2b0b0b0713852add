// A prover that proves everything proves nothing: damaged plans must be refused.
#include "host/check.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/share.h"
#include "tests/catch.h"
#include "tests/unit/planned.h"

namespace headrace::tests {
namespace {

using scheduler::PlanCapacity;
using scheduler::PlanHeader;
using scheduler::WorkItem;

// Three requests, two KV heads; request 1 is cut in three at shares 1/4 and 1/2.
struct Plan {
  PlanHeader header{};
  std::vector<WorkItem> items;
  PlanCapacity capacity{.max_items = 10, .max_partials = 6};
  std::vector<std::int32_t> seq_lens = {100, 4096, 0};

  Plan() {
    for (std::uint16_t head = 0; head < 2; ++head) {
      const std::uint32_t first_slot = 3u * head;
      items.push_back({1, head, 0, 16383, 0, 3, first_slot});
      items.push_back({1, head, 16384, 32767, 1, 3, first_slot});
      items.push_back({1, head, 32768, 65535, 2, 3, first_slot});
      items.push_back({0, head, 0, 65535, 0, 1, 0});
      items.push_back({2, head, 0, 65535, 0, 1, 0});
    }
    header.num_items = 10;
    header.num_requests = 3;
    header.num_kv_heads = 2;
    header.num_partials = 6;
    header.tile_tokens = 64;
    header.num_workers = 4;
  }

  std::string defect() const { return host::check_plan(header, items, capacity, seq_lens); }
};

void require_defect(const std::string& message, const std::function<void(Plan&)>& damage) {
  Plan plan;
  damage(plan);
  REQUIRE(plan.defect() == message);
}

// Counts for every token of request `request` and head `head` how many items cover it.
std::vector<int> cover_counts(const Planned& planned, std::uint32_t request, std::uint32_t head,
                              std::int32_t seq_len) {
  std::vector<int> counts(static_cast<std::size_t>(seq_len));
  for (const WorkItem& item : planned.items) {
    if (item.request != request || item.kv_head != head) continue;
    const auto range = scheduler::token_range(item, seq_len, planned.header.tile_tokens);
    for (std::int64_t token = range.begin; token < range.end; ++token) {
      ++counts[static_cast<std::size_t>(token)];
    }
  }
  return counts;
}

}  // namespace

TEST_CASE("a good plan is proved, for planned and for other lengths") {
  Plan plan;
  REQUIRE(plan.defect().empty());
  for (const std::int32_t len : {0, 1, 63, 64, 65, 255, 2147483647, -1}) {
    plan.seq_lens.assign(3, len);
    REQUIRE(plan.defect().empty());
  }
}

TEST_CASE("the order of the items in the queue does not matter") {
  Plan plan;
  std::reverse(plan.items.begin(), plan.items.end());
  REQUIRE(plan.defect().empty());
}

TEST_CASE("the prover agrees with counting token by token") {
  const std::vector<std::int32_t> seq_lens = {5000, 1, 0, 777, 20000};
  const host::PlannerConfig config{
      .max_requests = 5, .num_kv_heads = 3, .num_workers = 17, .max_seq_len = 20000, .cost = {}};
  const Planned planned = make_plan(config, seq_lens);
  REQUIRE(planned.header.num_partials > 0);
  REQUIRE(host::check_plan(planned.header, planned.items, host::plan_capacity(config), seq_lens)
              .empty());
  for (std::uint32_t request = 0; request < 5; ++request) {
    for (std::uint32_t head = 0; head < 3; ++head) {
      for (const std::int32_t len : {seq_lens[request], 333}) {
        REQUIRE(cover_counts(planned, request, head, len) ==
                std::vector<int>(static_cast<std::size_t>(len), 1));
      }
    }
  }
}

TEST_CASE("wrong counts in the header") {
  require_defect("the header counts 9 items, there are 10",
                 [](Plan& plan) { plan.header.num_items = 9; });
  require_defect("10 items, capacity is 9", [](Plan& plan) { plan.capacity.max_items = 9; });
  require_defect("6 partials, capacity is 5", [](Plan& plan) { plan.capacity.max_partials = 5; });
  require_defect("the header counts 2 requests, there are 3 lengths",
                 [](Plan& plan) { plan.header.num_requests = 2; });
  require_defect("65537 requests, at most 65536 can be named", [](Plan& plan) {
    plan.header.num_requests = 65537;
    plan.seq_lens.resize(65537);
  });
  require_defect("0 KV heads, 1 to 65536 can be named",
                 [](Plan& plan) { plan.header.num_kv_heads = 0; });
  require_defect("65537 KV heads, 1 to 65536 can be named",
                 [](Plan& plan) { plan.header.num_kv_heads = 65537; });
  require_defect("tiles of 0 tokens", [](Plan& plan) { plan.header.tile_tokens = 0; });
  require_defect("tiles of 2147483648 tokens",
                 [](Plan& plan) { plan.header.tile_tokens = 2147483648u; });
  require_defect("balanced for 0 workers", [](Plan& plan) { plan.header.num_workers = 0; });
  require_defect("invariant is 2", [](Plan& plan) { plan.header.invariant = 2; });
}

TEST_CASE("items of requests and heads that do not exist") {
  require_defect("item 3 is of request 3, there are 3",
                 [](Plan& plan) { plan.items[3].request = 3; });
  require_defect("item 9 is of KV head 2, there are 2",
                 [](Plan& plan) { plan.items[9].kv_head = 2; });
}

TEST_CASE("missing items") {
  require_defect("request 0, KV head 0: no item", [](Plan& plan) { plan.items[3].request = 2; });
  require_defect("request 2, KV head 1: no item", [](Plan& plan) {
    plan.items.pop_back();
    plan.header.num_items = 9;
  });
  require_defect("request 0, KV head 2: no item", [](Plan& plan) { plan.header.num_kv_heads = 3; });
}

TEST_CASE("tokens covered twice or never") {
  require_defect(
      "request 1, KV head 0: split 1 covers tokens 1088 to 2048, it should begin at 1024",
      [](Plan& plan) { plan.items[1].share_begin += 1024; });
  require_defect(
      "request 1, KV head 0: split 2 covers tokens 2048 to 4096, it should begin at 2112",
      [](Plan& plan) { plan.items[1].share_last += 1024; });
  require_defect("request 1, KV head 0: split 0 covers tokens 64 to 1024, it should begin at 0",
                 [](Plan& plan) { plan.items[0].share_begin = 1024; });
  require_defect("request 1, KV head 1: tokens 4032 to 4096 are covered by no split",
                 [](Plan& plan) { plan.items[7].share_last -= 1024; });
  require_defect("request 0, KV head 1: split 0 counts 1 splits, there are 2",
                 [](Plan& plan) { plan.items[9].request = 0; });
}

TEST_CASE("gaps and overlaps that only other lengths would show") {
  require_defect(
      "request 1, KV head 0: split 1 covers shares 16385 to 32767 inclusive, it should begin at "
      "16384",
      [](Plan& plan) {
        plan.seq_lens[1] = 0;
        plan.items[1].share_begin = 16385;
      });
  require_defect("request 2, KV head 0: shares from 65535 are missing",
                 [](Plan& plan) { plan.items[4].share_last = 65534; });
}

TEST_CASE("splits that are numbered wrongly") {
  require_defect("request 1, KV head 0: there is no split 1 before split 2",
                 [](Plan& plan) { plan.items[1].split_index = 2; });
  require_defect("request 1, KV head 0: there is no split 0 before split 1",
                 [](Plan& plan) { plan.items[0].split_index = 1; });
  require_defect(
      "request 1, KV head 0: split 0 covers tokens 1024 to 2048, it should begin at 0",
      [](Plan& plan) { std::swap(plan.items[0].split_index, plan.items[1].split_index); });
  require_defect("request 1, KV head 0: split 2 counts 4 splits, there are 3",
                 [](Plan& plan) { plan.items[2].split_count = 4; });
  require_defect("request 0, KV head 0: split 0 counts 0 splits, there are 1",
                 [](Plan& plan) { plan.items[3].split_count = 0; });
}

TEST_CASE("slots that do not fit") {
  require_defect("request 1, KV head 0: split 1 has first slot 3, split 0 has 0",
                 [](Plan& plan) { plan.items[1].first_slot = 3; });
  require_defect("request 1, KV head 1: slot 2 is used twice", [](Plan& plan) {
    for (int i = 5; i < 8; ++i) plan.items[static_cast<std::size_t>(i)].first_slot = 2;
  });
  require_defect("request 1, KV head 1: split 2 has slot 6, there are 6", [](Plan& plan) {
    for (int i = 5; i < 8; ++i) plan.items[static_cast<std::size_t>(i)].first_slot = 4;
  });
  require_defect("request 1, KV head 1: split 2 has slot 5, there are 5",
                 [](Plan& plan) { plan.header.num_partials = 5; });
}

}  // namespace headrace::tests
