// Catch2 v2 (Debian 12) or v3, whichever the system has. Avoid Approx and SKIP: they differ.
#pragma once

#include <string>

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_message.hpp>
#include <catch2/catch_test_macros.hpp>
#else
#include <catch2/catch.hpp>
#endif

namespace headrace::tests {

// What the tests of this program need and do not find, in words; "" if nothing. Programs that need
// something define it. One that lacks it exits with 77, which Meson counts as skipped, or fails
// with HEADRACE_REQUIRE_GPU=1 in the environment.
std::string missing_requirement();

}  // namespace headrace::tests
