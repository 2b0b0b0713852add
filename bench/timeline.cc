#include "bench/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "bench/statistics.h"

namespace headrace::bench {
namespace {

using Record = headrace_timeline_record;
using Step = std::vector<TimelineItem>;

constexpr TimelineEvent kEvents[] = {&Record::wanted,     &Record::claimed,   &Record::issued,
                                     &Record::first_byte, &Record::last_byte, &Record::computed,
                                     &Record::finished};

double to_us(std::uint64_t ns) { return static_cast<double>(ns) / 1e3; }

std::uint64_t begin_ns(const Step& step) {
  std::uint64_t begin = std::numeric_limits<std::uint64_t>::max();
  for (const TimelineItem& item : step) begin = std::min(begin, item.record.wanted);
  return begin;
}

std::uint64_t end_ns(const Step& step) {
  std::uint64_t end = 0;
  for (const TimelineItem& item : step) end = std::max(end, item.record.finished);
  return end;
}

// When a worker's copies are under way, from the first one issued to the last byte.
struct WorkerStream {
  std::uint64_t busy_ns = 0;  // items that overlap count once
  std::uint64_t end_ns = 0;   // no later item has anything to read
};

// Of the workers that had items.
std::vector<WorkerStream> worker_streams(const Step& step) {
  std::map<std::uint32_t, std::vector<std::pair<std::uint64_t, std::uint64_t>>> reads;
  for (const TimelineItem& item : step) {
    reads[item.record.worker].emplace_back(item.record.issued, item.record.last_byte);
  }
  std::vector<WorkerStream> streams;
  for (auto& [worker, intervals] : reads) {
    std::sort(intervals.begin(), intervals.end());
    WorkerStream stream;
    for (const auto& [begin, end] : intervals) {
      const std::uint64_t counted_to = std::max(begin, stream.end_ns);
      if (end <= counted_to) continue;
      stream.busy_ns += end - counted_to;
      stream.end_ns = end;
    }
    // One that read nothing was dry from its first item on.
    if (stream.end_ns == 0) stream.end_ns = intervals.front().first;
    streams.push_back(stream);
  }
  return streams;
}

std::string step_line(std::size_t number, const Step& step, std::uint64_t begin_of_all_ns,
                      std::int32_t num_workers) {
  const std::uint64_t begin = begin_ns(step);
  const double span_us = to_us(end_ns(step) - begin);
  std::uint64_t busy_ns = 0;
  std::vector<double> dry_us;
  for (const WorkerStream& stream : worker_streams(step)) {
    busy_ns += stream.busy_ns;
    dry_us.push_back(to_us(stream.end_ns - begin));
  }
  const auto [first_dry, last_dry] = std::minmax_element(dry_us.begin(), dry_us.end());
  return fmt::format("{:>10}  {:>9.2f}  {:>9.2f}  {:>7}  {:>6.1f}  {:>12.2f}  {:>11.2f}\n", number,
                     to_us(begin - begin_of_all_ns), span_us,
                     fmt::format("{}/{}", dry_us.size(), num_workers),
                     100 * to_us(busy_ns) / (num_workers * span_us), *first_dry, *last_dry);
}

}  // namespace

headrace_timeline_record in_order(headrace_timeline_record record) {
  std::uint64_t before = 0;
  for (const TimelineEvent event : kEvents)
    before = record.*event = std::max(before, record.*event);
  return record;
}

Timeline record_timeline(Backend& backend, Problem& problem, std::int32_t num_steps) {
  const auto plan = nlohmann::json::parse(problem.describe_plan());
  const std::int32_t heads_per_item =
      problem.desc().num_kv_heads / plan.at("num_kv_heads").get<std::int32_t>();
  std::vector<Record> records(problem.max_items());
  const std::size_t num_bytes = records.size() * sizeof(Record);
  std::vector<Memory> buffers;
  std::vector<Record*> timelines;
  for (std::int32_t i = 0; i < num_steps; ++i) {
    buffers.push_back(backend.allocate(num_bytes));
    backend.upload(buffers.back().get(), records.data(), num_bytes);
    timelines.push_back(reinterpret_cast<Record*>(buffers.back().get()));
  }
  backend.record(problem, timelines);

  Timeline timeline{.num_workers = backend.context().info().num_workers, .steps = {}};
  for (const Record* buffer : timelines) {
    backend.download(records.data(), buffer, num_bytes);
    Step& step = timeline.steps.emplace_back();
    for (const auto& item : plan.at("items")) {
      const Record& record = records[step.size()];
      if (record.finished == 0) {
        throw std::runtime_error(fmt::format("item {} of {} left no record in the timeline",
                                             step.size(), plan.at("items").size()));
      }
      step.push_back({.request = item.at("request"),
                      .kv_head = item.at("kv_head").get<std::int32_t>() * heads_per_item,
                      .split_index = item.at("split_index"),
                      .split_count = item.at("split_count"),
                      .tokens = item.at("token_end").get<std::int64_t>() -
                                item.at("token_begin").get<std::int64_t>(),
                      .record = in_order(record),
                      .num_kv_heads = heads_per_item});
    }
  }
  return timeline;
}

std::uint64_t begin_ns(const Timeline& timeline) {
  std::uint64_t begin = std::numeric_limits<std::uint64_t>::max();
  for (const Step& step : timeline.steps) begin = std::min(begin, begin_ns(step));
  return begin;
}

std::string timeline_summary(const Timeline& timeline) {
  std::string text =
      fmt::format("{:>10}  {:>9}  {:>9}  {:>7}  {:>6}  {:>12}  {:>11}\n", "step", "begins us",
                  "lasts us", "workers", "busy %", "first dry us", "last dry us");
  for (std::size_t i = 0; i < timeline.steps.size(); ++i) {
    text += step_line(i + 1, timeline.steps[i], begin_ns(timeline), timeline.num_workers);
  }
  text += fmt::format("\n{:>10}  {:>9}  {:>9}  {:>7}\n", "phase", "median us", "90 % us", "items");
  for (const Phase& phase : kPhases) {
    std::vector<double> times_us;
    for (const Step& step : timeline.steps) {
      for (const TimelineItem& item : step) {
        const Record& record = item.record;
        if (phase.is_of(record)) times_us.push_back(to_us(record.*phase.end - record.*phase.begin));
      }
    }
    if (times_us.empty()) continue;
    text += fmt::format("{:>10}  {:>9.2f}  {:>9.2f}  {:>7}\n", phase.name, quantile(times_us, 0.5),
                        quantile(times_us, 0.9), times_us.size());
  }
  return text;
}

}  // namespace headrace::bench
