// Random values and the float64 reference, both computed on the GPU: a cache of gigabytes would
// take the host minutes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/request_head.h"
#include "headrace/headrace.h"

namespace headrace::bench::cuda {

// As Backend::fill_normal() and Backend::reference().
void fill_normal(void* data, std::int64_t begin, std::int64_t end, headrace_dtype dtype,
                 std::uint64_t seed);
std::vector<double> reference(const headrace_attention_desc& desc, const headrace_run_args& args,
                              std::span<const RequestHead> rows);

}  // namespace headrace::bench::cuda
