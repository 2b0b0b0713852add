// headrace-bench: decode attention over paged caches against a plain copy.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/check.h"
#include "bench/device.h"
#include "bench/machine.h"
#include "bench/measure.h"
#include "bench/memory_meter.h"
#include "bench/names.h"
#include "bench/options.h"
#include "bench/problem.h"
#include "bench/report.h"

namespace headrace::bench {
namespace {

constexpr int kCheckedSamples = 16;

struct RowConfig {
  std::string profile;
  ProblemConfig problem;
};

std::size_t working_set_bytes(const Options& options) {
  return options.working_set_mib > 0 ? static_cast<std::size_t>(options.working_set_mib) << 20
                                     : 4 * last_level_cache_bytes();
}

// One per profile, batch and cache dtype. Profiles that fix the batch ignore --batch.
std::vector<RowConfig> row_configs(const Options& options) {
  std::vector<RowConfig> configs;
  for (const Profile& profile : options.profiles) {
    for (const std::int32_t batch : options.batches) {
      for (const headrace_dtype dtype : options.cache_dtypes) {
        configs.push_back({profile.text(),
                           {.seq_lens = profile.lengths(batch, options.seed),
                            .num_qo_heads = options.num_qo_heads,
                            .pool = {.num_kv_heads = options.num_kv_heads,
                                     .head_dim = options.head_dim,
                                     .page_size = options.page_size,
                                     .dtype = dtype,
                                     .layout = options.layout},
                            .head_scales = options.head_scales && dtype == HEADRACE_FLOAT8_E4M3,
                            .working_set_bytes = working_set_bytes(options),
                            .seed = options.seed}});
      }
      if (profile.fixes_batch()) break;
    }
  }
  return configs;
}

// One line on a terminal's stderr, overwritten by the next.
class Progress {
 public:
  explicit Progress(std::size_t num_rows) : num_rows_(num_rows) {}

  void show(std::size_t row, const RowConfig& config) const {
    if (!terminal_) return;
    fmt::print(stderr, "\r\033[K[{}/{}] {} {}", row + 1, num_rows_, config.profile,
               name_of(dtypes(), config.problem.pool.dtype));
    std::fflush(stderr);
  }
  void clear() const {
    if (terminal_) fmt::print(stderr, "\r\033[K");
  }

 private:
  std::size_t num_rows_;
  bool terminal_ = isatty(STDERR_FILENO) == 1;
};

Row measure_row(const Device& device, const RowConfig& config, MemoryMeter& meter,
                const StopRule& rule) {
  Problem problem(device, config.problem);
  const Measurement measurement = measure(device, problem, meter, rule);
  return {.profile = config.profile,
          .batch = static_cast<std::int32_t>(config.problem.seq_lens.size()),
          .num_qo_heads = config.problem.num_qo_heads,
          .pool = config.problem.pool,
          .head_scales = config.problem.head_scales,
          .kv_bytes = problem.kv_bytes(),
          .num_sets = problem.pools().num_sets(),
          .measurement = measurement,
          .rms_error_pct = rms_error_pct(problem, kCheckedSamples)};
}

void write_json(const std::string& path, const nlohmann::ordered_json& json) {
  const std::string text = json.dump(2) + "\n";
  if (path == "-") {
    fmt::print("{}", text);
    return;
  }
  std::ofstream file(path);
  if (!(file << text) || !file.flush()) {
    throw std::runtime_error(fmt::format("--json: '{}' cannot be written", path));
  }
}

int run(const Options& options) {
  const Device device(options.device, options.workers);
  const std::vector<RowConfig> configs = row_configs(options);
  const bool print_table = options.json_path != "-";
  std::size_t profile_width = 0;
  for (const RowConfig& config : configs) {
    profile_width = std::max(profile_width, config.profile.size());
  }
  if (print_table) fmt::print("{}\n{}\n", machine_line(device), table_header(profile_width));

  MemoryMeter meter(device, working_set_bytes(options));
  const StopRule rule{options.min_repetitions, options.min_time_s, options.noise_pct};
  const Progress progress(configs.size());
  std::vector<Row> rows;
  std::size_t num_wrong = 0;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    progress.show(i, configs[i]);
    rows.push_back(measure_row(device, configs[i], meter, rule));
    progress.clear();
    if (print_table) fmt::print("{}\n", table_row(rows.back(), profile_width));
    std::fflush(stdout);
    if (!(rows.back().rms_error_pct <= kMaxRmsErrorPct)) ++num_wrong;
  }
  if (!options.json_path.empty()) write_json(options.json_path, to_json(device, rows));
  if (num_wrong == 0) return 0;
  fmt::print(stderr,
             "headrace-bench: {} of {} rows are wrong: an error of at most {} % is needed\n",
             num_wrong, rows.size(), kMaxRmsErrorPct);
  return 1;
}

}  // namespace
}  // namespace headrace::bench

int main(int argc, char** argv) {
  using namespace headrace::bench;
  try {
    Options options;
    if (const std::optional<int> status = parse_options(argc, argv, options)) return *status;
    return run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "headrace-bench: {}\n", error.what());
    return 1;
  }
}
