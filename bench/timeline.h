// When every item of a step was claimed, streamed and finished, and what that comes to.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/backend.h"
#include "bench/problem.h"

namespace headrace::bench {

// One item of the plan and its record, in which no event is before the one it follows.
struct TimelineItem {
  std::int32_t request;
  std::int32_t kv_head;  // the first one
  std::int32_t split_index;
  std::int32_t split_count;
  std::int64_t tokens;
  headrace_timeline_record record;
  std::int32_t num_kv_heads = 1;  // a CPU may compute several in one item
};

struct Timeline {
  std::int32_t num_workers;
  std::vector<std::vector<TimelineItem>> steps;  // in the order of the plan
};

using TimelineEvent = std::uint64_t headrace_timeline_record::*;

// What happens to an item between two events.
struct Phase {
  const char* name;
  TimelineEvent begin;
  TimelineEvent end;
  std::optional<bool> merged = {};  // only of items that merged, or that did not

  bool is_of(const headrace_timeline_record& record) const {
    return !merged || *merged == (record.merged != 0);
  }
};

inline constexpr std::array<Phase, 7> kPhases{
    {{"wait", &headrace_timeline_record::wanted, &headrace_timeline_record::claimed},
     {"table", &headrace_timeline_record::claimed, &headrace_timeline_record::issued},
     {"first byte", &headrace_timeline_record::issued, &headrace_timeline_record::first_byte},
     {"stream", &headrace_timeline_record::first_byte, &headrace_timeline_record::last_byte},
     {"tail", &headrace_timeline_record::last_byte, &headrace_timeline_record::computed},
     {"write", &headrace_timeline_record::computed, &headrace_timeline_record::finished, false},
     {"merge", &headrace_timeline_record::computed, &headrace_timeline_record::finished, true}}};

// An item's record with each event no earlier than the one it follows: an item without tokens has
// no first and no last byte.
headrace_timeline_record in_order(headrace_timeline_record record);

// Runs the problem on cold KV sets; the last num_steps runs are recorded. Throws std::runtime_error
// if an item left no record.
Timeline record_timeline(Backend& backend, Problem& problem, std::int32_t num_steps);

// When the first item of all steps was wanted.
std::uint64_t begin_ns(const Timeline& timeline);

// Tables for a terminal: per step its span, how busy its workers are and when they ran dry; per
// phase median and 90 %.
std::string timeline_summary(const Timeline& timeline);

}  // namespace headrace::bench
