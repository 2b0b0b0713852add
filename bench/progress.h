// One line on a terminal's stderr, overwritten by the next: row i of n, and the time left.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace headrace::bench {

class Progress {
 public:
  // Of num_rows rows, num_known need no measuring.
  Progress(std::size_t num_rows, std::size_t num_known);

  // Before a row is measured.
  void show(std::size_t row, const std::string& what);
  // After it, before anything else is printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  std::size_t num_rows_;
  std::size_t num_left_;
  std::size_t num_measured_ = 0;
  Clock::time_point start_ = Clock::now();
  bool is_terminal_;
};

}  // namespace headrace::bench
