#include "bench/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace headrace::bench {

Progress::Progress(std::size_t num_rows, std::size_t num_known)
    : num_rows_(num_rows),
      num_left_(num_rows - num_known),
      is_terminal_(isatty(STDERR_FILENO) == 1) {}

void Progress::show(std::size_t row, const std::string& what) {
  if (!is_terminal_) return;
  std::string left;
  if (num_measured_ > 0) {
    const std::chrono::duration<double> passed = Clock::now() - start_;
    const double seconds =
        passed.count() / static_cast<double>(num_measured_) * static_cast<double>(num_left_);
    left = fmt::format(", {:.0f} s left", seconds);
  }
  fmt::print(stderr, "\r\033[K[{}/{}{}] {}", row + 1, num_rows_, left, what);
  std::fflush(stderr);
}

void Progress::clear() {
  ++num_measured_;
  --num_left_;
  if (is_terminal_) fmt::print(stderr, "\r\033[K");
}

}  // namespace headrace::bench
