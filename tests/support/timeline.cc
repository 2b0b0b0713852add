#include "tests/support/timeline.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace headrace::tests {
namespace {

bool is_untouched(const headrace_timeline_record& record) {
  static const headrace_timeline_record untouched = untouched_timeline(1).front();
  return std::memcmp(&record, &untouched, sizeof(record)) == 0;
}

// An item without tokens has no first and last byte to record.
std::string event_defect(const headrace_timeline_record& record, bool has_tokens) {
  std::vector<std::pair<const char*, std::uint64_t>> events = {
      {"wanted", record.wanted}, {"claimed", record.claimed}, {"issued", record.issued}};
  if (has_tokens) {
    events.emplace_back("first_byte", record.first_byte);
    events.emplace_back("last_byte", record.last_byte);
  }
  events.emplace_back("computed", record.computed);
  events.emplace_back("finished", record.finished);
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    const auto& [earlier, earlier_ns] = events[i];
    const auto& [later, later_ns] = events[i + 1];
    if (earlier_ns > later_ns) {
      return fmt::format("{} at {} ns is after {} at {} ns", earlier, earlier_ns, later, later_ns);
    }
  }
  // The largest number is what untouched fields hold.
  if (record.finished == UINT64_MAX) return "finished is not recorded";
  return "";
}

}  // namespace

std::vector<headrace_timeline_record> untouched_timeline(std::size_t num_records) {
  headrace_timeline_record record;
  std::memset(&record, 0xFF, sizeof(record));
  return std::vector<headrace_timeline_record>(num_records, record);
}

std::vector<headrace_timeline_record> read_timeline(const DeviceBuffer& timeline) {
  const std::vector<std::byte> bytes = timeline.download();
  std::vector<headrace_timeline_record> records(bytes.size() / sizeof(headrace_timeline_record));
  std::memcpy(records.data(), bytes.data(), bytes.size());
  return records;
}

std::string timeline_defect(std::string_view plan_json,
                            std::span<const headrace_timeline_record> records,
                            std::int32_t num_requests, std::int32_t num_workers) {
  const auto items = nlohmann::json::parse(plan_json)["items"];
  if (records.size() < items.size()) {
    return fmt::format("{} records for {} items", records.size(), items.size());
  }
  struct Merges {
    bool is_split = false;
    std::uint32_t done = 0;
  };
  std::map<std::pair<std::int32_t, std::int32_t>, Merges> merges;  // by request and KV head
  for (std::size_t i = 0; i < records.size(); ++i) {
    const headrace_timeline_record& record = records[i];
    if (i >= items.size() || items[i]["request"].get<std::int32_t>() >= num_requests) {
      if (!is_untouched(record)) return fmt::format("record {} belongs to no row of the run", i);
      continue;
    }
    const auto& item = items[i];
    if (record.worker >= static_cast<std::uint32_t>(num_workers)) {
      return fmt::format("record {}: worker {} of {}", i, record.worker, num_workers);
    }
    if (record.merged > 1) return fmt::format("record {}: merged is {}", i, record.merged);
    const std::string wrong = event_defect(record, item["token_begin"] < item["token_end"]);
    if (!wrong.empty()) return fmt::format("record {}: {}", i, wrong);
    Merges& head = merges[{item["request"], item["kv_head"]}];
    head.is_split = item["split_count"] > 1;
    head.done += record.merged;
  }
  for (const auto& [head, merged] : merges) {
    if (merged.done != (merged.is_split ? 1 : 0)) {
      return fmt::format("request {}, KV head {}: {} items merged", head.first, head.second,
                         merged.done);
    }
  }
  return "";
}

}  // namespace headrace::tests
