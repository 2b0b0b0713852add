// The one main of all Catch2 programs: exits with 0 (passed), 1 (failed) or 77 (skipped).
#define CATCH_CONFIG_RUNNER
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/catch.h"
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#endif

namespace headrace::tests {
namespace {
bool skipped = false;
}

bool skip(const char* reason) {
  const char* required = std::getenv("HEADRACE_REQUIRE_GPU");
  if (required != nullptr && std::strcmp(required, "1") == 0) return false;
  std::printf("skipped: %s\n", reason);
  skipped = true;
  return true;
}

}  // namespace headrace::tests

int main(int argc, char** argv) {
  const int failures = Catch::Session().run(argc, argv);
  if (failures != 0) return 1;
  return headrace::tests::skipped ? 77 : 0;
}
