// Results as text: lines of a terminal's table, and tables of GitHub's Markdown.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "bench/results.h"

namespace headrace::bench {

// One line, without a line break.
std::string origin_line(const Results& results);

// Lines without a line break. The profile column has profile_width characters.
std::string table_header(std::size_t profile_width);
std::string table_line(const Row& row, std::size_t profile_width);

// What a row's bytes of K and V are counted as; "2 GB and more" to "below 64 MB".
std::string size_class(std::size_t kv_bytes);

// One row per batch, profile and KV heads: MB and "us (% of peak copy)" per cache type and page
// size.
std::string markdown_table(std::span<const Row> rows);

// Per size class and cache type: how many rows, the lowest and the median % of peak copy.
std::string markdown_summary(std::span<const Row> rows);

// Reasons with the rows they hold for, one per line; "" if none was skipped.
std::string skipped_lines(std::span<const Row> rows);

}  // namespace headrace::bench
