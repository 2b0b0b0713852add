// `run` and `grid`: one row per configuration.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bench/backend.h"
#include "bench/cases.h"
#include "bench/check.h"
#include "bench/commands.h"
#include "bench/commit.h"
#include "bench/problem.h"
#include "bench/progress.h"
#include "bench/results.h"
#include "bench/table.h"
#include "bench/timeline.h"
#include "bench/trace.h"

namespace headrace::bench {
namespace {

// Of K and V of a batch, in whole pages.
constexpr double kMaxGridBytes = 80e9;

// Two, so that it can be seen how they overlap.
constexpr std::int32_t kTimelineSteps = 2;

StopRule stop_rule(const Options& options, const Backend& backend) {
  return {.min_repetitions = options.min_repetitions,
          .min_time_s = options.min_time_s.value_or(backend.default_min_time_s()),
          .noise_pct = options.noise_pct};
}

// Why the grid does not measure a configuration; "" if it does.
std::string reason_to_skip(const SetSizes& sizes, std::size_t available_bytes) {
  const auto set_bytes = static_cast<double>(sizes.set_bytes());
  if (set_bytes > kMaxGridBytes) {
    return fmt::format("K and V are {:.1f} GB, the grid has at most {:.0f} GB", set_bytes / 1e9,
                       kMaxGridBytes / 1e9);
  }
  const std::size_t needed_bytes = 2 * sizes.pool_bytes();
  if (needed_bytes > available_bytes) {
    return fmt::format("needs {} MiB of memory, {} MiB are available", needed_bytes >> 20,
                       available_bytes >> 20);
  }
  return "";
}

bool is_wrong(const Row& row) { return row.skipped.empty() && !row.error.is_small(); }

class Measurer {
 public:
  explicit Measurer(const Options& options)
      : options_(options),
        cases_(options.command == Command::kGrid ? grid_cases(options) : run_cases(options)),
        backend_(make_backend(options.device, options.workers,
                              static_cast<std::size_t>(options.working_set_mib) << 20)),
        launches_(launches(options, backend_->context().info().device)),
        pools_(*backend_, options.seed),
        results_{.version = headrace_version(),
                 .machine = backend_->machine(),
                 .commit = HEADRACE_BENCH_COMMIT,
                 .seed = options.seed,
                 .peak_copy_gbps = 0,
                 .rows = {}} {}

  int run() {
    require_one_row_for_timeline();
    require_writable(options_.timeline_path);
    require_writable(options_.json_path);
    resume_or_measure_copy();
    skip_large_ones();
    reserve_pools();
    for (const ProblemConfig& config : cases_) {
      profile_width_ = std::max(profile_width_, config.profile.size());
    }
    if (prints_table()) {
      fmt::print("{}\n{}\n", origin_line(results_), table_header(profile_width_));
    }
    std::size_t num_unknown = 0;
    for (const ProblemConfig& config : cases_) num_unknown += unknown_launches(config).size();
    const std::size_t num_rows = cases_.size() * launches_.size();
    Progress progress(num_rows, num_rows - num_unknown);
    for (std::size_t i = 0; i < cases_.size(); ++i) measure_case(i, progress);
    return finish();
  }

 private:
  void require_one_row_for_timeline() const {
    const std::size_t num_rows = cases_.size() * launches_.size();
    if (options_.timeline_path.empty() || num_rows == 1) return;
    throw std::invalid_argument(
        fmt::format("--timeline: needs options that select one row, given {} rows", num_rows));
  }

  bool is_grid() const { return options_.command == Command::kGrid; }
  bool prints_table() const { return options_.json_path != "-"; }
  void save() const {
    if (!options_.json_path.empty()) write_json(options_.json_path, to_json(results_));
  }

  // What an earlier call has skipped may fit now, so only measured rows are kept.
  void resume_or_measure_copy() {
    if (is_grid() && std::filesystem::exists(options_.json_path)) {
      Results kept = read_results(options_.json_path);
      require_same_origin(kept, results_, options_.json_path);
      std::erase_if(kept.rows, [](const Row& row) { return !row.skipped.empty(); });
      results_ = std::move(kept);
    } else {
      results_.peak_copy_gbps = backend_->peak_copy_gbps();
    }
  }

  void skip_large_ones() {
    if (!is_grid()) return;
    const std::size_t available_bytes = backend_->available_bytes();
    for (const ProblemConfig& config : cases_) {
      const std::string reason = reason_to_skip(sizes_of(config), available_bytes);
      if (reason.empty()) continue;
      for (const Launch& launch : unknown_launches(config)) {
        Row row;
        row.key = key_of(config, launch);
        row.kv_bytes = config.kv_bytes();
        row.skipped = reason;
        results_.put(std::move(row));
      }
    }
  }

  // For the largest row to come, so that the pools never move.
  void reserve_pools() {
    std::size_t pool_bytes = 0;
    for (const ProblemConfig& config : cases_) {
      if (unknown_launches(config).empty()) continue;
      pool_bytes = std::max(pool_bytes, sizes_of(config).pool_bytes());
    }
    pools_.reserve(pool_bytes);
  }

  SetSizes sizes_of(const ProblemConfig& config) const {
    return set_sizes(config.pool, config.seq_lens, backend_->cold_bytes());
  }

  // Those that results_ has no row of.
  std::vector<Launch> unknown_launches(const ProblemConfig& config) const {
    std::vector<Launch> unknown;
    for (const Launch& launch : launches_) {
      if (results_.find(key_of(config, launch)) == nullptr) unknown.push_back(launch);
    }
    return unknown;
  }

  // The problem is set up once for all launches.
  void measure_case(std::size_t index, Progress& progress) {
    const ProblemConfig& config = cases_[index];
    std::optional<Problem> problem;
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      const RowKey key = key_of(config, launches_[i]);
      if (results_.find(key) == nullptr) {
        progress.show(index * launches_.size() + i,
                      fmt::format("{} x {} {}", key.batch, key.profile, key.dtype));
        if (!problem) problem.emplace(*backend_, pools_, config);
        results_.put(measure(*problem, launches_[i]));
        progress.clear();
        if (prints_table()) save();
      }
      if (prints_table()) fmt::print("{}\n", table_line(*results_.find(key), profile_width_));
      if (!options_.timeline_path.empty()) write_timeline(*problem);
      std::fflush(stdout);
    }
  }

  void write_timeline(Problem& problem) const {
    const Timeline timeline = record_timeline(*backend_, problem, kTimelineSteps);
    write_json(options_.timeline_path, to_trace(timeline), -1);
    if (prints_table()) fmt::print("\n{}", timeline_summary(timeline));
  }

  Row measure(Problem& problem, const Launch& launch) {
    problem.set_launch(launch);
    Row row;
    row.key = key_of(problem.config(), launch);
    row.kv_bytes = problem.config().kv_bytes();
    row.num_sets = problem.num_sets();
    row.error = check(*backend_, problem);
    row.timing = backend_->time(problem, stop_rule(options_, *backend_));
    row.pct_peak_copy = 100 * row.gbps() / results_.peak_copy_gbps;
    return row;
  }

  // Of this call's rows; the file may hold more.
  int finish() const {
    std::vector<Row> rows;
    for (const ProblemConfig& config : cases_) {
      for (const Launch& launch : launches_) rows.push_back(*results_.find(key_of(config, launch)));
    }
    save();
    if (is_grid() && prints_table()) {
      fmt::print("{}\n{}", skipped_lines(rows), markdown(rows, true));
    }
    const auto num_wrong = std::count_if(rows.begin(), rows.end(), is_wrong);
    if (num_wrong == 0) return 0;
    fmt::print(
        stderr,
        "headrace-bench: {} of {} rows are wrong: an RMS error of at most {} % and a largest "
        "error of at most {} % are needed\n",
        num_wrong, rows.size(), kMaxRmsErrorPct, kMaxErrorPct);
    return 1;
  }

  const Options& options_;
  std::vector<ProblemConfig> cases_;
  std::unique_ptr<Backend> backend_;
  std::vector<Launch> launches_;
  KvPools pools_;
  Results results_;
  std::size_t profile_width_ = 0;
};

}  // namespace

int measure_cases(const Options& options) { return Measurer(options).run(); }

}  // namespace headrace::bench
