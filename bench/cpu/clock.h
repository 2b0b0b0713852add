#pragma once

#include <chrono>

namespace headrace::bench::cpu {

// How long `work` takes.
template <typename Work>
double elapsed_us(Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace headrace::bench::cpu
