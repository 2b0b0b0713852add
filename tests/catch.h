// Catch2 v2 (Debian 12) or v3, whichever the system has. Avoid Approx and SKIP: they differ.
#pragma once

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_message.hpp>
#include <catch2/catch_test_macros.hpp>
#else
#include <catch2/catch.hpp>
#endif

namespace headrace::tests {

// Says that this program cannot test what it is for (no GPU, say). A program that said so and
// failed nothing exits with 77, which Meson counts as skipped. Returns whether skipping is allowed:
// with HEADRACE_REQUIRE_GPU=1 in the environment it is not, and the caller must fail.
bool skip(const char* reason);

}  // namespace headrace::tests
