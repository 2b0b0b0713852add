// The float64 reference on the host, plain loops, apart from the library's own code.
#pragma once

#include <span>
#include <vector>

#include "bench/backend.h"

namespace headrace::bench::cpu {

// As Backend::reference().
std::vector<double> reference(const headrace_attention_desc& desc, const headrace_run_args& args,
                              std::span<const RequestHead> rows);

}  // namespace headrace::bench::cpu
