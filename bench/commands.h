// What headrace-bench can do. Each returns the program's exit status and throws on failure.
#pragma once

#include "bench/options.h"

namespace headrace::bench {

// `run` and `grid`.
int measure_cases(const Options& options);
int measure_roof(const Options& options);
int print_tables(const Options& options);

}  // namespace headrace::bench
