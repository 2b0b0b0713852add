// Which configurations a command measures.
#pragma once

#include <vector>

#include "bench/options.h"
#include "bench/problem.h"

namespace headrace::bench {

// Every combination of the options' values. Profiles that fix the batch ignore --batch.
std::vector<ProblemConfig> run_cases(const Options& options);

// The published problem, as far as the options leave it. Throws std::invalid_argument if they ask
// for what it does not have, or leave nothing.
std::vector<ProblemConfig> grid_cases(const Options& options);

}  // namespace headrace::bench
