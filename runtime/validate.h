// Validation mode: lengths and page tables, checked before anything is computed.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/headrace.h"

namespace headrace::runtime {

// Host memory. Row r of the table begins at table + r * row_distance and has row_entries entries,
// of which those that list no page of the request are not read.
struct PageTables {
  std::span<const std::int32_t> seq_lens;  // tokens
  const std::int32_t* table;
  std::int64_t row_distance;
  std::int64_t row_entries;
  std::int32_t page_size;  // tokens
  std::int64_t num_pages;  // in the pool
};

// Checks that every length is between 0 and the tokens a row of the table can list, and that every
// page id in use lies in the pool. Names the first bad entry, going through the requests in order.
// Errors: INVALID_DATA.
headrace_status validate_tables(const PageTables& tables) noexcept;

}  // namespace headrace::runtime
