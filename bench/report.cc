#include "bench/report.h"

#include <fmt/format.h>

#include <thread>
#include <vector>

#include "bench/commit.h"
#include "bench/machine.h"
#include "bench/names.h"
#include "bench/statistics.h"

namespace headrace::bench {
namespace {

constexpr const char* kTableFormat =
    "{:>5}  {:<{}}  {:>5}  {:>6}  {:>4}  {:>6}  {:>8}  {:>9}  {:>15}  {:>6}  {:>5}  {:>5}  {:>6}  "
    "{:>7}";

nlohmann::ordered_json to_json(const Row& row) {
  const Measurement& measured = row.measurement;
  return {{"batch", row.batch},
          {"profile", row.profile},
          {"kv_heads", row.pool.num_kv_heads},
          {"query_heads", row.num_qo_heads},
          {"head_dim", row.pool.head_dim},
          {"page_size", row.pool.page_size},
          {"dtype", name_of(dtypes(), row.pool.dtype)},
          {"layout", name_of(layouts(), row.pool.layout)},
          {"head_scales", row.head_scales},
          {"bytes", row.kv_bytes},
          {"kv_sets", row.num_sets},
          {"repetitions", measured.repetitions},
          {"us", measured.median_us},
          {"us_p10", measured.p10_us},
          {"us_p90", measured.p90_us},
          {"gbps", row.gbps()},
          {"copy_gbps", measured.memory.copy_gbps},
          {"memcpy_gbps", measured.memory.memcpy_gbps},
          {"read_gbps", measured.memory.read_gbps},
          {"pct_copy", row.pct_copy()},
          {"rms_error_pct", row.rms_error_pct}};
}

}  // namespace

std::string machine_line(const Device& device) {
  return fmt::format("headrace {} ({}) on {}: {}", headrace_version(), HEADRACE_BENCH_COMMIT,
                     cpu_model(), device.description());
}

std::string table_header(std::size_t profile_width) {
  return fmt::format(fmt::runtime(kTableFormat), "batch", "profile", profile_width, "cache",
                     "heads", "page", "layout", "K+V MB", "median us", "p10-p90 us", "GB/s", "copy",
                     "read", "% copy", "error %");
}

std::string table_row(const Row& row, std::size_t profile_width) {
  const Measurement& measured = row.measurement;
  return fmt::format(
      fmt::runtime(kTableFormat), row.batch, row.profile, profile_width,
      name_of(dtypes(), row.pool.dtype),
      fmt::format("{}/{}", row.num_qo_heads, row.pool.num_kv_heads), row.pool.page_size,
      name_of(layouts(), row.pool.layout),
      fmt::format("{:.1f}", static_cast<double>(row.kv_bytes) / 1e6),
      fmt::format("{:.1f}", measured.median_us),
      fmt::format("{:.0f}-{:.0f}", measured.p10_us, measured.p90_us),
      fmt::format("{:.2f}", row.gbps()), fmt::format("{:.1f}", measured.memory.copy_gbps),
      fmt::format("{:.1f}", measured.memory.read_gbps), fmt::format("{:.1f}", row.pct_copy()),
      fmt::format("{:.3f}", row.rms_error_pct));
}

nlohmann::ordered_json to_json(const Device& device, std::span<const Row> rows) {
  nlohmann::ordered_json json_rows = nlohmann::ordered_json::array();
  std::vector<double> copies;
  for (const Row& row : rows) {
    json_rows.push_back(to_json(row));
    copies.push_back(row.measurement.memory.copy_gbps);
  }
  return {{"version", headrace_version()},
          {"commit", HEADRACE_BENCH_COMMIT},
          {"machine",
           {{"cpu", cpu_model()},
            {"threads", std::thread::hardware_concurrency()},
            {"last_level_cache_bytes", last_level_cache_bytes()},
            {"device", device.description()},
            {"workers", device.num_workers()}}},
          {"copy_gbps", quantile(copies, 0.5)},
          {"rows", json_rows}};
}

}  // namespace headrace::bench
