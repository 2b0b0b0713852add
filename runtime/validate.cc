#include "runtime/validate.h"

#include <cstdint>

#include "runtime/status.h"

namespace headrace::runtime {

headrace_status validate_tables(const kernels::DecodeParams& params) noexcept {
  for (std::int64_t request = 0; request < params.num_requests; ++request) {
    const std::int64_t len = params.seq_lens[request];
    if (len < 0) {
      return fail(HEADRACE_INVALID_DATA, "seq_lens[{}] is {}; needed: 0 or more", request, len);
    }
    const std::int64_t num_pages = (len + params.page_size - 1) / params.page_size;
    if (num_pages > params.block_table_stride) {
      return fail(HEADRACE_INVALID_DATA,
                  "seq_lens[{}] is {}, which takes {} pages of {} tokens; a row of block_table has "
                  "{} entries",
                  request, len, num_pages, params.page_size, params.block_table_stride);
    }
    const std::int32_t* const row = params.block_table + request * params.block_table_stride;
    for (std::int64_t entry = 0; entry < num_pages; ++entry) {
      if (row[entry] < 0 || row[entry] >= params.num_pages) {
        return fail(HEADRACE_INVALID_DATA,
                    "block_table[{}][{}] is {}; the pool has {} pages (ids 0 to {})", request,
                    entry, row[entry], params.num_pages, params.num_pages - 1);
      }
    }
  }
  return HEADRACE_OK;
}

}  // namespace headrace::runtime
