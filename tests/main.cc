// The one main of all Catch2 programs: exits with 0 (passed), 1 (failed) or 77 (skipped).
#define CATCH_CONFIG_RUNNER
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/catch.h"
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#endif

int main(int argc, char** argv) {
  const std::string missing = headrace::tests::missing_requirement();
  if (missing.empty()) return Catch::Session().run(argc, argv) == 0 ? 0 : 1;

  const char* required = std::getenv("HEADRACE_REQUIRE_GPU");
  const bool must_run = required != nullptr && std::strcmp(required, "1") == 0;
  std::printf("%s: %s\n", must_run ? "failed" : "skipped", missing.c_str());
  return must_run ? 1 : 77;
}
