// Timelines as a GPU records them: items of one worker overlap, and some events may be missing.
#include "bench/timeline.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench/trace.h"
#include "tests/catch.h"

namespace headrace::bench {
namespace {

// Each item is claimed, and its stream begins, before the one before is computed.
TimelineItem overlapping_item(std::uint32_t worker, std::uint64_t i) {
  const std::uint64_t begin = 1'000'000 + 1000 * i;
  return {.request = static_cast<std::int32_t>(i),
          .kv_head = 0,
          .split_index = 0,
          .split_count = 1,
          .tokens = 64,
          .record = {.worker = worker,
                     .merged = i % 2 == 0 ? 1U : 0U,
                     .wanted = begin,
                     .claimed = begin + 200,
                     .issued = begin + 1100,
                     .first_byte = begin + 1600,
                     .last_byte = begin + 2400,
                     .computed = begin + 2500,
                     .finished = begin + 4700}};
}

Timeline overlapping_timeline() {
  Timeline timeline{.num_workers = 4, .steps = {{}, {}}};
  for (std::uint64_t i = 0; i < 5; ++i) {
    timeline.steps[0].push_back(overlapping_item(0, i));
    timeline.steps[0].push_back(overlapping_item(3, i));
    timeline.steps[1].push_back(overlapping_item(0, i + 3));
  }
  return timeline;
}

TEST_CASE("events that did not happen take no time") {
  const headrace_timeline_record record = in_order({.worker = 7,
                                                    .merged = 0,
                                                    .wanted = 10,
                                                    .claimed = 12,
                                                    .issued = 15,
                                                    .first_byte = 0,
                                                    .last_byte = 3,
                                                    .computed = 20,
                                                    .finished = 19});
  CHECK(record.worker == 7);
  CHECK(record.issued == 15);
  CHECK(record.first_byte == 15);
  CHECK(record.last_byte == 15);
  CHECK(record.computed == 20);
  CHECK(record.finished == 20);
}

TEST_CASE("slices of a lane nest or lie apart, however items overlap") {
  const nlohmann::ordered_json trace = to_trace(overlapping_timeline());
  using Lane = std::pair<int, int>;
  std::map<Lane, std::vector<std::pair<std::int64_t, std::int64_t>>> slices;
  std::map<std::string, int> num_of_category;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const auto ns = [&](const char* name) {
      return static_cast<std::int64_t>(event.at(name).get<double>() * 1e3 + 0.5);
    };
    CHECK(ns("ts") >= 0);
    slices[{event.at("pid"), event.at("tid")}].emplace_back(ns("ts"), ns("ts") + ns("dur"));
    ++num_of_category[event.at("cat")];
  }
  CHECK(num_of_category ==
        std::map<std::string, int>{{"queue", 15}, {"stream", 15}, {"finish", 15}, {"phase", 90}});
  // Per worker two lanes of the queue, two streams and three finishes.
  CHECK(slices.size() == 3 * 7);
  for (const auto& [lane, of_lane] : slices) {
    for (const auto& slice : of_lane) {
      CHECK(std::none_of(of_lane.begin(), of_lane.end(), [&slice](const auto& other) {
        return slice.first < other.first && other.first < slice.second &&
               slice.second < other.second;
      }));
    }
  }
}

TEST_CASE("the summary counts time in which items overlap once") {
  // Streams of a worker last from 1100 to 6400 ns, the step from 0 to 8700.
  const std::string text = timeline_summary(overlapping_timeline());
  CHECK(text.find("         1       0.00       8.70      2/4    30.5          6.40         6.40") !=
        std::string::npos);
  CHECK(text.find("         2       3.00       8.70      1/4    15.2          6.40         6.40") !=
        std::string::npos);
  CHECK(text.find("first byte       0.50       0.50       15") != std::string::npos);
  CHECK(text.find("     merge       2.20       2.20        8") != std::string::npos);
}

}  // namespace
}  // namespace headrace::bench
