#include "host/describe.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scheduler/share.h"
#include "tests/catch.h"
#include "tests/unit/planned.h"

namespace headrace::tests {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

host::PlannerConfig config_for(std::uint32_t max_requests) {
  return {.max_requests = max_requests,
          .num_kv_heads = 2,
          .num_workers = 16,
          .max_seq_len = 100000,
          .cost = {}};
}

}  // namespace

TEST_CASE("the JSON text says what the plan says") {
  const std::vector<std::int32_t> seq_lens = {300, 0, 65537};
  const Planned planned = make_plan(config_for(3), seq_lens);
  const auto plan =
      nlohmann::json::parse(host::plan_to_json(planned.header, planned.items, seq_lens));
  REQUIRE(plan["num_items"] == planned.header.num_items);
  REQUIRE(plan["num_requests"] == 3);
  REQUIRE(plan["num_kv_heads"] == 2);
  REQUIRE(plan["num_partials"] == planned.header.num_partials);
  REQUIRE(plan["tile_tokens"] == 64);
  REQUIRE(plan["num_workers"] == 16);
  REQUIRE(plan["invariant"] == false);
  REQUIRE(plan["items"].size() == planned.items.size());

  bool saw_split = false;
  for (std::size_t i = 0; i < planned.items.size(); ++i) {
    const scheduler::WorkItem& item = planned.items[i];
    const auto range = scheduler::token_range(item, seq_lens[item.request], 64);
    const nlohmann::json& entry = plan["items"][i];
    REQUIRE(entry["request"] == item.request);
    REQUIRE(entry["kv_head"] == item.kv_head);
    REQUIRE(entry["token_begin"] == range.begin);
    REQUIRE(entry["token_end"] == range.end);
    REQUIRE(entry["split_index"] == item.split_index);
    REQUIRE(entry["split_count"] == item.split_count);
    if (item.split_count == 1) {
      REQUIRE(entry["slot"].is_null());
    } else {
      saw_split = true;
      REQUIRE(entry["slot"] == scheduler::partial_slot(item));
    }
  }
  REQUIRE(saw_split);
}

TEST_CASE("the text has the totals and a row for each request, longest first") {
  const std::vector<std::int32_t> seq_lens = {300, 0, 65537};
  host::PlannerConfig config = config_for(3);
  config.invariant = true;
  const Planned planned = make_plan(config, seq_lens);
  const std::string text = host::plan_to_text(planned.header, planned.items, seq_lens);
  CAPTURE(text);
  REQUIRE(contains(text, "3 requests, 65837 tokens, 2 KV heads, 16 workers, invariant splits"));
  REQUIRE(contains(text, "68 items in tiles of 64 tokens, 1 requests split, 64 partials"));
  REQUIRE(contains(text,
                   "       2      65537      32         2048         2049          0\n"
                   "       0        300       1          300          300         64\n"
                   "       1          0       1            0            0         66\n"));
}

TEST_CASE("the text of a big plan stays short") {
  const std::vector<std::int32_t> seq_lens(200, 1000);
  const Planned planned = make_plan(config_for(200), seq_lens);
  const std::string text = host::plan_to_text(planned.header, planned.items, seq_lens);
  REQUIRE(contains(text, "... and 168 requests that come later in the queue\n"));
  REQUIRE(std::count(text.begin(), text.end(), '\n') == 2 + 2 + 32 + 1);
}

TEST_CASE("a plan of nothing is described") {
  const std::vector<std::int32_t> none;
  const Planned planned = make_plan(config_for(1), none);
  REQUIRE(host::plan_to_text(planned.header, planned.items, none) ==
          "0 requests, 0 tokens, 2 KV heads, 16 workers\n"
          "0 items in tiles of 64 tokens, 0 requests split, 0 partials\n");
  const auto plan = nlohmann::json::parse(host::plan_to_json(planned.header, planned.items, none));
  REQUIRE(plan["items"].empty());
}

}  // namespace headrace::tests
