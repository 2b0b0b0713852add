// The kind of device that a program's tests run on, and what that kind can do: the same tests serve
// the CPU and CUDA executors.
#pragma once

#include "headrace/headrace.h"
#include "tests/support/problem.h"

namespace headrace::tests {

// The CPU, unless the program defines it otherwise.
extern const headrace_device kTestedDevice;

// Whether the tested kind takes such problems.
bool supported(const ProblemSpec& spec);

// Sets the type of the cache and, where it must be the same, that of the queries.
void set_cache_dtype(ProblemSpec& spec, headrace_dtype dtype);

// The output type that shows most of what a kernel computed.
headrace_dtype widest_out_dtype();

// For tests that are content with any head dim: the cheapest.
std::int32_t smallest_head_dim();

// As many workers as a large device of the kind has.
std::int32_t many_workers();

}  // namespace headrace::tests
