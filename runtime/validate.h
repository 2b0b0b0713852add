// Validation mode: lengths and page tables in host memory, checked before anything is computed.
#pragma once

#include "headrace/headrace.h"
#include "kernels/decode_params.h"

namespace headrace::runtime {

// Checks that every seq_lens entry is between 0 and the tokens a row of the table can list, and
// that every page id in use lies in the pool. Names the first bad entry, going through the requests
// in order. Errors: INVALID_DATA.
headrace_status validate_tables(const kernels::DecodeParams& params) noexcept;

}  // namespace headrace::runtime
