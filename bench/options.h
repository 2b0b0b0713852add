// The command line of headrace-bench.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/profiles.h"
#include "headrace/headrace.h"

namespace headrace::bench {

struct Options {
  headrace_device device = HEADRACE_DEVICE_CPU;
  std::int32_t workers = 0;  // 0: all of the device

  std::vector<std::int32_t> batches;  // used by profiles that do not fix it
  std::vector<Profile> profiles;
  std::uint64_t seed = 1;

  std::int32_t num_kv_heads = 8;
  std::int32_t num_qo_heads = 32;
  std::int32_t head_dim = 128;
  std::int32_t page_size = 16;
  std::vector<headrace_dtype> cache_dtypes;
  headrace_layout layout = HEADRACE_NHD;
  bool head_scales = true;  // fp8 only

  std::int32_t min_repetitions = 10;
  double min_time_s = 1;
  double noise_pct = 0.5;
  std::int64_t working_set_mib = 0;  // 0: four times the last-level cache

  std::string json_path;  // "": none, "-": stdout instead of the table
};

// Exit status of a call whose options are wrong; 1 is a failed or wrong measurement.
inline constexpr int kBadOptions = 2;

// Fills `options`; or, when the program has nothing more to do (help, bad options, which it
// prints), returns the exit status.
std::optional<int> parse_options(int argc, char** argv, Options& options);

}  // namespace headrace::bench
