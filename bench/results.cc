#include "bench/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <utility>

#include "bench/names.h"

namespace headrace::bench {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Row& row) {
  const RowKey& key = row.key;
  Json json{{"batch", key.batch},
            {"profile", key.profile},
            {"kv_heads", key.num_kv_heads},
            {"qo_heads", key.num_qo_heads},
            {"head_dim", key.head_dim},
            {"page_size", key.page_size},
            {"dtype", key.dtype},
            {"layout", key.layout},
            {"head_scales", key.head_scales},
            {"dependent_launch", key.launch.is_dependent()},
            {"bytes", row.kv_bytes}};
  if (key.launch.is_dependent()) json["fresh_tokens"] = key.launch.fresh_tokens;
  if (!row.skipped.empty()) {
    json["skipped"] = row.skipped;
    return json;
  }
  json.update(Json{{"kv_sets", row.num_sets},
                   {"repetitions", row.timing.repetitions},
                   {"us", row.timing.us},
                   {"spread_us", row.timing.spread_us},
                   {"gbps", row.gbps()},
                   {"pct_peak_copy", row.pct_peak_copy},
                   {"pct_matched_copy", row.pct_matched_copy()},
                   {"rms_error_pct", row.error.rms_pct},
                   {"max_error_pct", row.error.max_pct},
                   {"checked_outputs", row.error.num_checked},
                   {"outputs", row.error.num_rows}});
  return json;
}

// JSON has no NaN: what is not finite was written as null.
double number(const Json& json, const char* name) {
  const Json& value = json.at(name);
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

// Files of earlier versions lack what has a default here.
Launch launch_from_json(const Json& json) {
  if (!json.value("dependent_launch", false)) return {};
  return {kDependentLaunch, json.value("fresh_tokens", 1)};
}

Row row_from_json(const Json& json) {
  Row row;
  row.key = {.batch = json.at("batch").get<std::int32_t>(),
             .profile = json.at("profile").get<std::string>(),
             .num_kv_heads = json.at("kv_heads").get<std::int32_t>(),
             .num_qo_heads = json.value("qo_heads", 32),
             .head_dim = json.value("head_dim", 128),
             .page_size = json.at("page_size").get<std::int32_t>(),
             .dtype = json.at("dtype").get<std::string>(),
             .layout = json.at("layout").get<std::string>(),
             .head_scales = json.value("head_scales", json.at("dtype") == "fp8"),
             .launch = launch_from_json(json)};
  row.kv_bytes = json.at("bytes").get<std::size_t>();
  row.skipped = json.value("skipped", "");
  if (!row.skipped.empty()) return row;
  row.num_sets = json.value("kv_sets", 0);
  row.timing = {.repetitions = json.value("repetitions", 0),
                .us = number(json, "us"),
                .spread_us = number(json, "spread_us"),
                .matched_copy_gbps = 100 * number(json, "gbps") / number(json, "pct_matched_copy")};
  row.pct_peak_copy = number(json, "pct_peak_copy");
  row.error = {.rms_pct = number(json, "rms_error_pct"),
               .max_pct = number(json, "max_error_pct"),
               .num_checked = json.value("checked_outputs", 0),
               .num_rows = json.value("outputs", 0)};
  return row;
}

Results results_from_json(const Json& json) {
  Results results;
  results.version = json.value("version", "");
  results.machine = json.at("machine");
  results.commit = json.at("commit").get<std::string>();
  results.seed = json.at("seed").get<std::uint64_t>();
  results.peak_copy_gbps = number(json, "peak_copy_gbps");
  for (const Json& row : json.at("rows")) results.rows.push_back(row_from_json(row));
  return results;
}

std::string unfinished_path(const std::string& path) { return path + ".tmp"; }

[[noreturn]] void fail_to_write(const std::string& path) {
  throw std::runtime_error(fmt::format("'{}' cannot be written", path));
}

}  // namespace

const Row* Results::find(const RowKey& key) const {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.key == key; });
  return found == rows.end() ? nullptr : &*found;
}

void Results::put(Row row) {
  const auto same = std::find_if(rows.begin(), rows.end(),
                                 [&](const Row& other) { return other.key == row.key; });
  if (same == rows.end()) {
    rows.push_back(std::move(row));
  } else {
    *same = std::move(row);
  }
}

RowKey key_of(const ProblemConfig& config, const Launch& launch) {
  return {.batch = static_cast<std::int32_t>(config.seq_lens.size()),
          .profile = config.profile,
          .num_kv_heads = config.pool.num_kv_heads,
          .num_qo_heads = config.num_qo_heads,
          .head_dim = config.pool.head_dim,
          .page_size = config.pool.page_size,
          .dtype = name_of(dtypes(), config.pool.dtype),
          .layout = name_of(layouts(), config.pool.layout),
          .head_scales = config.head_scales,
          .launch = launch};
}

nlohmann::ordered_json to_json(const Results& results) {
  Json rows = Json::array();
  for (const Row& row : results.rows) rows.push_back(to_json(row));
  return {{"version", results.version},
          {"machine", results.machine},
          {"commit", results.commit},
          {"seed", results.seed},
          {"peak_copy_gbps", results.peak_copy_gbps},
          {"rows", rows}};
}

Results read_results(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(fmt::format("'{}' cannot be read", path));
  try {
    return results_from_json(Json::parse(file));
  } catch (const Json::exception& error) {
    throw std::runtime_error(fmt::format(
        "'{}': needs results of headrace-bench, given something else ({})", path, error.what()));
  }
}

void require_writable(const std::string& path) {
  if (path.empty() || path == "-") return;
  const std::string unfinished = unfinished_path(path);
  if (!std::ofstream(unfinished)) fail_to_write(path);
  std::filesystem::remove(unfinished);
}

void write_json(const std::string& path, const nlohmann::ordered_json& json, int indent) {
  const std::string text = json.dump(indent) + "\n";
  if (path == "-") {
    fmt::print("{}", text);
    return;
  }
  const std::string unfinished = unfinished_path(path);
  std::ofstream file(unfinished);
  file << text;
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(unfinished, path, error);
  if (!file || error) fail_to_write(path);
}

void require_same_origin(const Results& kept, const Results& now, const std::string& path) {
  const auto require = [&](const char* what, const Json& needed, const Json& given) {
    if (needed == given) return;
    throw std::runtime_error(fmt::format(
        "'{}' holds results of another {}: needs {}, given {}. Name another file, or remove this "
        "one to start anew",
        path, what, needed.dump(), given.dump()));
  };
  require("machine", kept.machine, now.machine);
  require("commit", kept.commit, now.commit);
  require("seed", kept.seed, now.seed);
}

}  // namespace headrace::bench
