// `table`: results as Markdown.
#include <fmt/format.h>

#include <vector>

#include "bench/commands.h"
#include "bench/results.h"
#include "bench/table.h"

namespace headrace::bench {

int print_tables(const Options& options) {
  Results all;
  std::string origins;
  for (const std::string& path : options.files) {
    const Results results = read_results(path);
    origins += origin_line(results) + "\n";
    for (const Row& row : results.rows) all.put(row);
  }
  fmt::print("{}\n", origins);
  fmt::print("{}", markdown(all.rows, options.brief));
  return 0;
}

}  // namespace headrace::bench
