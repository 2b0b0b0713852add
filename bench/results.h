// What measured configurations came to, and the JSON file it is kept in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/check.h"
#include "bench/measure.h"
#include "bench/problem.h"

namespace headrace::bench {

// What a row is about; no two rows of a file have the same.
struct RowKey {
  std::int32_t batch = 0;
  std::string profile;
  std::int32_t num_kv_heads = 0;
  std::int32_t num_qo_heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t page_size = 0;
  std::string dtype;
  std::string layout;
  bool head_scales = false;
  Launch launch;

  bool operator==(const RowKey&) const = default;
};

struct Row {
  RowKey key;
  std::size_t kv_bytes = 0;  // K and V of all valid tokens
  std::string skipped;       // why; "" if measured. The rest holds for measured rows
  std::int64_t num_sets = 0;
  Timing timing{};
  Error error{};
  double pct_peak_copy = 0;

  double gbps() const { return static_cast<double>(kv_bytes) / timing.us / 1e3; }
  double pct_matched_copy() const { return 100 * gbps() / timing.matched_copy_gbps; }
};

struct Results {
  std::string version;
  nlohmann::ordered_json machine;
  std::string commit;
  std::uint64_t seed = 0;
  double peak_copy_gbps = 0;
  std::vector<Row> rows;

  // Null if there is none.
  const Row* find(const RowKey& key) const;
  // Takes the place of the row with this key.
  void put(Row row);
};

RowKey key_of(const ProblemConfig& config, const Launch& launch);

nlohmann::ordered_json to_json(const Results& results);

// Throws std::runtime_error with the path if the file is missing or holds something else.
Results read_results(const std::string& path);

// Throws std::runtime_error with the path if write_json() could not write it: better known before
// a measurement than after it. "" and "-" always can.
void require_writable(const std::string& path);

// Replaces the file at once, so that whoever stops the program finds it whole; "-" is stdout. An
// indent of -1 writes a single line.
void write_json(const std::string& path, const nlohmann::ordered_json& json, int indent = 1);

// Throws std::runtime_error that says what differs unless results of `now` may be added to `kept`,
// read from `path`.
void require_same_origin(const Results& kept, const Results& now, const std::string& path);

}  // namespace headrace::bench
