// The command line of headrace-bench.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "bench/launch.h"
#include "bench/profiles.h"
#include "headrace/headrace.h"

namespace headrace::bench {

enum class Command { kRun, kGrid, kRoof, kTable };

struct Options {
  Command command = Command::kRun;

  headrace_device device = HEADRACE_DEVICE_AUTO;
  std::int32_t workers = 0;  // 0: all of the device

  // Of `grid`, empty lists mean all it has.
  std::vector<std::int32_t> batches;  // used by profiles that do not fix it
  std::vector<Profile> profiles;      // not of `grid`
  std::vector<std::int32_t> kv_heads;
  std::vector<std::int32_t> page_sizes;
  std::vector<headrace_dtype> cache_dtypes;
  std::vector<headrace_layout> layouts{HEADRACE_NHD};
  std::int32_t num_qo_heads = 32;
  std::int32_t head_dim = 128;
  bool head_scales = true;                   // fp8 only
  std::vector<LaunchKind> launches;          // none: the command's default
  std::optional<std::int32_t> fresh_tokens;  // none: 1, what a decode step appends
  std::uint64_t seed = 1;
  double min_mb = 0;  // 10^6 bytes of K and V
  double max_mb = std::numeric_limits<double>::infinity();

  std::int32_t min_repetitions = 10;
  std::optional<double> min_time_s;  // none: the device's default
  double noise_pct = 0.5;
  std::int64_t working_set_mib = 0;  // 0: four times the last-level cache

  std::string json_path;  // "": none, "-": stdout instead of the table

  std::string timeline_path;  // "": none; of a run with one row

  std::vector<std::string> files;  // of `table`
  bool brief = false;
};

// Exit status of a call whose options are wrong; 1 is a failed or wrong measurement.
inline constexpr int kBadOptions = 2;

// Fills `options`; or, when the program has nothing more to do (help, bad options, which it
// prints), returns the exit status.
std::optional<int> parse_options(int argc, char** argv, Options& options);

// Says on stderr what is wrong with the options, and how to get help.
void print_bad_options(const char* message);

}  // namespace headrace::bench
