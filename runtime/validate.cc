#include "runtime/validate.h"

#include <cstdint>

#include "runtime/status.h"

namespace headrace::runtime {

headrace_status validate_tables(const PageTables& tables) noexcept {
  const std::int64_t page_size = tables.page_size;
  for (std::size_t request = 0; request < tables.seq_lens.size(); ++request) {
    const std::int64_t len = tables.seq_lens[request];
    if (len < 0) {
      return fail(HEADRACE_INVALID_DATA, "seq_lens[{}] is {}; needed: 0 or more", request, len);
    }
    const std::int64_t num_pages = (len + page_size - 1) / page_size;
    if (num_pages > tables.row_entries) {
      return fail(HEADRACE_INVALID_DATA,
                  "seq_lens[{}] is {}, which takes {} pages of {} tokens; a row of block_table has "
                  "{} entries",
                  request, len, num_pages, page_size, tables.row_entries);
    }
    const std::int32_t* const row =
        tables.table + static_cast<std::int64_t>(request) * tables.row_distance;
    for (std::int64_t entry = 0; entry < num_pages; ++entry) {
      if (row[entry] < 0 || row[entry] >= tables.num_pages) {
        return fail(HEADRACE_INVALID_DATA,
                    "block_table[{}][{}] is {}; the pool has {} pages (ids 0 to {})", request,
                    entry, row[entry], tables.num_pages, tables.num_pages - 1);
      }
    }
  }
  return HEADRACE_OK;
}

}  // namespace headrace::runtime
