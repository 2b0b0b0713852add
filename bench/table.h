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

// Per way to launch: a table of "us (% of peak copy)" per batch, profile, KV heads, cache type and
// page size, unless `brief`; and the lowest and the median % of peak copy per size class and cache
// type.
std::string markdown(std::span<const Row> rows, bool brief);

// Reasons with the rows they hold for, one per line; "" if none was skipped.
std::string skipped_lines(std::span<const Row> rows);

}  // namespace headrace::bench
