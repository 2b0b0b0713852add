// What a measured configuration came to, as a table row and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "bench/device.h"
#include "bench/measure.h"
#include "bench/problem.h"
#include "bench/profiles.h"

namespace headrace::bench {

struct Row {
  std::string profile;
  std::int32_t batch;
  std::int32_t num_qo_heads;
  PoolShape pool;
  bool head_scales;
  std::size_t kv_bytes;  // K and V of all valid tokens
  std::int64_t num_sets;
  Measurement measurement;
  double rms_error_pct;

  double gbps() const { return static_cast<double>(kv_bytes) / measurement.median_us / 1e3; }
  double pct_copy() const { return 100 * gbps() / measurement.memory.copy_gbps; }
};

// Lines without a line break. The profile column has profile_width characters.
std::string machine_line(const Device& device);
std::string table_header(std::size_t profile_width);
std::string table_row(const Row& row, std::size_t profile_width);

nlohmann::ordered_json to_json(const Device& device, std::span<const Row> rows);

}  // namespace headrace::bench
