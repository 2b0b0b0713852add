// Random problems of every kind that the tested device supports, and ways to run them.
#pragma once

#include <cstdint>

#include "tests/support/problem.h"
#include "tests/support/random.h"
#include "tests/support/run_problem.h"

namespace headrace::tests {

ProblemSpec random_spec(Random& random, std::uint64_t seed);
RunOptions random_options(Random& random, const ProblemSpec& spec);

}  // namespace headrace::tests
