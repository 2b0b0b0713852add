#include "bench/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace headrace::bench {
namespace {

using Json = nlohmann::ordered_json;
using Record = headrace_timeline_record;
using Step = std::vector<TimelineItem>;

struct LaneKind {
  const char* name;
  TimelineEvent begin;
  TimelineEvent end;
  std::size_t first_phase;  // of kPhases
  std::size_t end_phase;
};

constexpr std::array<LaneKind, 3> kLaneKinds{
    {{"queue", &Record::wanted, &Record::issued, 0, 2},
     {"stream", &Record::issued, &Record::computed, 2, 5},
     {"finish", &Record::computed, &Record::finished, 5, kPhases.size()}}};

// For each item the lane, counted within its kind and worker: the first one that is free when the
// item begins.
std::vector<std::size_t> assign_lanes(const Step& step, const LaneKind& kind) {
  std::vector<std::size_t> order(step.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto key = [&](std::size_t i) {
      const Record& record = step[i].record;
      return std::tuple(record.*kind.begin, record.*kind.end, i);
    };
    return key(a) < key(b);
  });
  std::map<std::uint32_t, std::vector<std::uint64_t>> lane_ends;  // by worker
  std::vector<std::size_t> lanes(step.size());
  for (const std::size_t i : order) {
    const Record& record = step[i].record;
    std::vector<std::uint64_t>& ends = lane_ends[record.worker];
    const auto free = std::find_if(ends.begin(), ends.end(),
                                   [&](std::uint64_t end) { return end <= record.*kind.begin; });
    lanes[i] = static_cast<std::size_t>(free - ends.begin());
    if (free == ends.end()) {
      ends.push_back(record.*kind.end);
    } else {
      *free = record.*kind.end;
    }
  }
  return lanes;
}

std::string item_name(const TimelineItem& item) {
  std::string heads = std::to_string(item.kv_head);
  if (item.num_kv_heads > 1) heads += fmt::format("-{}", item.kv_head + item.num_kv_heads - 1);
  return fmt::format("r{} h{} {}/{}", item.request, heads, item.split_index + 1, item.split_count);
}

class TraceWriter {
 public:
  explicit TraceWriter(const Timeline& timeline)
      : timeline_(timeline), origin_ns_(begin_ns(timeline)) {
    for (std::size_t k = 0; k < kLaneKinds.size(); ++k) {
      std::size_t num_lanes = 0;
      for (const Step& step : timeline.steps) {
        lanes_[k].push_back(assign_lanes(step, kLaneKinds[k]));
        for (const std::size_t lane : lanes_[k].back()) num_lanes = std::max(num_lanes, lane + 1);
      }
      first_lane_[k + 1] = first_lane_[k] + num_lanes;
    }
  }

  Json write() {
    for (std::size_t s = 0; s < timeline_.steps.size(); ++s) write_step(s);
    return {{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events_)}};
  }

 private:
  void write_step(std::size_t step) {
    const std::size_t pid = step + 1;
    write_name("process_name", pid, 0, fmt::format("step {}", pid));
    std::map<std::size_t, std::string> thread_names;
    for (std::size_t i = 0; i < timeline_.steps[step].size(); ++i) {
      const TimelineItem& item = timeline_.steps[step][i];
      for (std::size_t k = 0; k < kLaneKinds.size(); ++k) {
        const LaneKind& kind = kLaneKinds[k];
        const std::size_t lane = lanes_[k][step][i];
        const std::size_t tid = item.record.worker * first_lane_.back() + first_lane_[k] + lane;
        thread_names.try_emplace(tid, fmt::format("worker {} {}{}", item.record.worker, kind.name,
                                                  lane == 0 ? "" : fmt::format(" {}", lane + 1)));
        write_slice(item_name(item), kind.name, item, kind.begin, kind.end, pid, tid);
        for (std::size_t p = kind.first_phase; p < kind.end_phase; ++p) {
          const Phase& phase = kPhases[p];
          if (!phase.is_of(item.record)) continue;
          write_slice(phase.name, "phase", item, phase.begin, phase.end, pid, tid);
        }
      }
    }
    for (const auto& [tid, name] : thread_names) write_name("thread_name", pid, tid, name);
  }

  void write_slice(const std::string& name, const char* category, const TimelineItem& item,
                   TimelineEvent begin, TimelineEvent end, std::size_t pid, std::size_t tid) {
    const auto us = [](std::uint64_t ns) { return static_cast<double>(ns) / 1e3; };
    events_.push_back({{"name", name},
                       {"cat", category},
                       {"ph", "X"},
                       {"ts", us(item.record.*begin - origin_ns_)},
                       {"dur", us(item.record.*end - item.record.*begin)},
                       {"pid", pid},
                       {"tid", tid},
                       {"args",
                        {{"request", item.request},
                         {"kv_head", item.kv_head},
                         {"split", fmt::format("{}/{}", item.split_index + 1, item.split_count)},
                         {"tokens", item.tokens}}}});
  }

  void write_name(const char* what, std::size_t pid, std::size_t tid, const std::string& name) {
    events_.push_back(
        {{"name", what}, {"ph", "M"}, {"pid", pid}, {"tid", tid}, {"args", {{"name", name}}}});
  }

  const Timeline& timeline_;
  const std::uint64_t origin_ns_;
  // By kind, step and item: the lane within the kind.
  std::array<std::vector<std::vector<std::size_t>>, kLaneKinds.size()> lanes_;
  // Of a kind among a worker's lanes; the last entry is how many lanes a worker has.
  std::array<std::size_t, kLaneKinds.size() + 1> first_lane_{};
  Json events_ = Json::array();
};

}  // namespace

nlohmann::ordered_json to_trace(const Timeline& timeline) { return TraceWriter(timeline).write(); }

}  // namespace headrace::bench
