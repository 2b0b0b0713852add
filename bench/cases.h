// Which configurations a command measures.
#pragma once

#include <vector>

#include "bench/launch.h"
#include "bench/options.h"
#include "bench/problem.h"

namespace headrace::bench {

// Every combination of the options' values. Profiles that fix the batch ignore --batch.
std::vector<ProblemConfig> run_cases(const Options& options);

// The published problem, as far as the options leave it. Throws std::invalid_argument if they ask
// for what it does not have, or leave nothing.
std::vector<ProblemConfig> grid_cases(const Options& options);

// The ways in which every case is measured: those asked for, or plain, in the grid of a GPU both.
// Throws std::invalid_argument for what the device cannot do.
std::vector<Launch> launches(const Options& options, headrace_device device);

}  // namespace headrace::bench
