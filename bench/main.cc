// headrace-bench: decode attention over paged caches against plain copies.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>

#include "bench/commands.h"
#include "bench/options.h"

namespace headrace::bench {
namespace {

int run(const Options& options) {
  switch (options.command) {
    case Command::kRoof:
      return measure_roof(options);
    case Command::kTable:
      return print_tables(options);
    case Command::kRun:
    case Command::kGrid:
      break;
  }
  return measure_cases(options);
}

}  // namespace
}  // namespace headrace::bench

int main(int argc, char** argv) {
  using namespace headrace::bench;
  try {
    Options options;
    if (const std::optional<int> status = parse_options(argc, argv, options)) return *status;
    return run(options);
  } catch (const std::invalid_argument& error) {
    print_bad_options(error.what());
    return kBadOptions;
  } catch (const std::exception& error) {
    fmt::print(stderr, "headrace-bench: {}\n", error.what());
    return 1;
  }
}
