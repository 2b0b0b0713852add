#include "bench/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "bench/names.h"
#include "bench/statistics.h"

namespace headrace::bench {
namespace {

constexpr const char* kLineFormat =
    "{:>5}  {:<{}}  {:>5}  {:>6}  {:>4}  {:>6}  {:>9}  {:>8}  {:>9}  {:>7}  {:>7}  {:>6}  {:>6}  "
    "{:>6}  "
    "{:>6}  {:>9}";

struct SizeClass {
  double min_bytes;
  const char* name;
};

constexpr std::array<SizeClass, 6> kSizeClasses{{{2e9, "2 GB and more"},
                                                 {1e9, "1 to 2 GB"},
                                                 {512e6, "512 MB to 1 GB"},
                                                 {256e6, "256 to 512 MB"},
                                                 {64e6, "64 to 256 MB"},
                                                 {0, "below 64 MB"}}};

std::size_t class_index(std::size_t kv_bytes) {
  std::size_t index = 0;
  while (static_cast<double>(kv_bytes) < kSizeClasses[index].min_bytes) ++index;
  return index;
}

double megabytes(const Row& row) { return static_cast<double>(row.kv_bytes) / 1e6; }

std::string megabytes_text(const Row& row) {
  return fmt::format("{:.{}f}", megabytes(row), megabytes(row) < 10 ? 1 : 0);
}

// Values of `of` over the rows, in the order in which they first come.
template <typename Of>
auto distinct(std::span<const Row> rows, Of of) {
  std::vector<decltype(of(rows[0]))> values;
  for (const Row& row : rows) {
    if (std::find(values.begin(), values.end(), of(row)) == values.end()) {
      values.push_back(of(row));
    }
  }
  return values;
}

std::string requests(const RowKey& key) { return fmt::format("{} x {}", key.batch, key.profile); }

std::string lowest_name(const RowKey& key) {
  return fmt::format("{}, {} KV heads, page {}, {}", requests(key), key.num_kv_heads, key.page_size,
                     key.layout);
}

std::string heading(const Launch& launch) {
  if (!launch.is_dependent()) return "Plain launches:";
  return fmt::format("Dependent launches, fresh tokens {}:", launch.fresh_tokens);
}

}  // namespace

std::string origin_line(const Results& results) {
  const auto& machine = results.machine;
  std::string text = fmt::format("headrace {} ({}) on {}", results.version, results.commit,
                                 machine.value("device", "an unknown device"));
  if (machine.contains("executor")) {
    text += fmt::format(": {}", machine.at("executor").get<std::string>());
  }
  if (machine.contains("driver")) {
    text += fmt::format(", driver {}", machine.at("driver").get<std::string>());
  }
  return text + fmt::format("; peak copy {:.1f} GB/s", results.peak_copy_gbps);
}

std::string table_header(std::size_t profile_width) {
  return fmt::format(fmt::runtime(kLineFormat), "batch", "profile", profile_width, "cache", "heads",
                     "page", "layout", "launch", "K+V MB", "us", "+- us", "GB/s", "% peak",
                     "% copy", "rms %", "max %", "checked");
}

std::string table_line(const Row& row, std::size_t profile_width) {
  const RowKey& key = row.key;
  const auto line = [&](const auto&... measured) {
    return fmt::format(fmt::runtime(kLineFormat), key.batch, key.profile, profile_width, key.dtype,
                       fmt::format("{}/{}", key.num_qo_heads, key.num_kv_heads), key.page_size,
                       key.layout, name_of(launch_kinds(), key.launch.kind),
                       fmt::format("{:.1f}", megabytes(row)), measured...);
  };
  if (!row.skipped.empty()) return line("skipped", "-", "-", "-", "-", "-", "-", "-");
  return line(fmt::format("{:.2f}", row.timing.us), fmt::format("{:.2f}", row.timing.spread_us),
              fmt::format("{:.2f}", row.gbps()), fmt::format("{:.1f}", row.pct_peak_copy),
              fmt::format("{:.1f}", row.pct_matched_copy()),
              fmt::format("{:.3f}", row.error.rms_pct), fmt::format("{:.3f}", row.error.max_pct),
              fmt::format("{}/{}", row.error.num_checked, row.error.num_rows));
}

std::string size_class(std::size_t kv_bytes) { return kSizeClasses[class_index(kv_bytes)].name; }

namespace {

// One row per batch, profile and KV heads: MB and "us (% of peak copy)" per cache type and page
// size.
std::string markdown_table(std::span<const Row> rows) {
  const auto dtypes = distinct(rows, [](const Row& row) { return row.key.dtype; });
  auto page_sizes = distinct(rows, [](const Row& row) { return row.key.page_size; });
  std::sort(page_sizes.begin(), page_sizes.end());
  const auto groups = distinct(
      rows, [](const Row& row) { return std::pair(row.key.num_kv_heads, row.key.layout); });
  const auto lines =
      distinct(rows, [](const Row& row) { return std::pair(row.key.batch, row.key.profile); });
  const bool one_layout = distinct(rows, [](const Row& row) { return row.key.layout; }).size() == 1;

  std::string header = "| batch | profile |";
  std::string rule = "| ---: | --- |";
  std::string blanks;
  for (const std::string& dtype : dtypes) {
    header += fmt::format(" MB {} |", dtype);
    rule += " ---: |";
    blanks += " |";
    for (const std::int32_t page_size : page_sizes) {
      header += fmt::format(" {} p{} |", dtype, page_size);
      rule += " ---: |";
      blanks += " |";
    }
  }

  std::map<
      std::tuple<std::int32_t, std::string, std::int32_t, std::string, std::string, std::int32_t>,
      const Row*>
      by_cell;
  for (const Row& row : rows) {
    by_cell[{row.key.num_kv_heads, row.key.layout, row.key.batch, row.key.profile, row.key.dtype,
             row.key.page_size}] = &row;
  }
  std::string text = header + "\n" + rule + "\n";
  for (const auto& [kv_heads, layout] : groups) {
    text += fmt::format("| **{} KV heads{}** | |{}\n", kv_heads, one_layout ? "" : ", " + layout,
                        blanks);
    for (const auto& [batch, profile] : lines) {
      std::string line = fmt::format("| {} | {} |", batch, profile);
      bool is_empty = true;
      for (const std::string& dtype : dtypes) {
        std::string size = "-";
        std::string cells;
        for (const std::int32_t page_size : page_sizes) {
          const auto found = by_cell.find({kv_heads, layout, batch, profile, dtype, page_size});
          if (found == by_cell.end()) {
            cells += " - |";
            continue;
          }
          const Row& row = *found->second;
          is_empty = false;
          size = megabytes_text(row);
          cells += row.skipped.empty()
                       ? fmt::format(" {:.1f} ({:.1f}) |", row.timing.us, row.pct_peak_copy)
                       : " skipped |";
        }
        line += fmt::format(" {} |{}", size, cells);
      }
      if (!is_empty) text += line + "\n";
    }
  }
  return text;
}

// Per size class and cache type: how many rows, the lowest and the median % of peak copy.
std::string markdown_summary(std::span<const Row> rows) {
  std::string text =
      "| K and V | cache | rows | lowest % of peak copy | median | lowest row |\n"
      "| --- | --- | ---: | ---: | ---: | --- |\n";
  for (std::size_t index = 0; index < kSizeClasses.size(); ++index) {
    for (const auto& dtype : distinct(rows, [](const Row& row) { return row.key.dtype; })) {
      std::vector<double> percents;
      const Row* lowest = nullptr;
      for (const Row& row : rows) {
        if (!row.skipped.empty() || row.key.dtype != dtype || class_index(row.kv_bytes) != index) {
          continue;
        }
        percents.push_back(row.pct_peak_copy);
        if (lowest == nullptr || row.pct_peak_copy < lowest->pct_peak_copy) lowest = &row;
      }
      if (lowest == nullptr) continue;
      text += fmt::format("| {} | {} | {} | {:.1f} | {:.1f} | {} |\n", kSizeClasses[index].name,
                          dtype, percents.size(), lowest->pct_peak_copy, quantile(percents, 0.5),
                          lowest_name(lowest->key));
    }
  }
  return text;
}

}  // namespace

std::string markdown(std::span<const Row> rows, bool brief) {
  std::string text;
  for (const Launch& launch : distinct(rows, [](const Row& row) { return row.key.launch; })) {
    std::vector<Row> launched;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(launched),
                 [&](const Row& row) { return row.key.launch == launch; });
    if (!text.empty()) text += "\n";
    text += heading(launch) + "\n\n";
    if (!brief) text += markdown_table(launched) + "\n";
    text += markdown_summary(launched);
  }
  return text;
}

std::string skipped_lines(std::span<const Row> rows) {
  std::string text;
  for (const Row& row : rows) {
    if (row.skipped.empty()) continue;
    text += fmt::format("skipped: {}, {}, {} KV heads, page {}, {}: {}\n", requests(row.key),
                        row.key.dtype, row.key.num_kv_heads, row.key.page_size, row.key.layout,
                        row.skipped);
  }
  return text;
}

}  // namespace headrace::bench
