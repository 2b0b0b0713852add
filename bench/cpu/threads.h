// Runs a function on several threads at once.
#pragma once

#include <thread>
#include <vector>

namespace headrace::bench::cpu {

// Calls work(i) for 0 <= i < num_threads, work(0) on this thread; returns when all are done.
template <typename Work>
void on_threads(int num_threads, Work&& work) {
  std::vector<std::jthread> threads;
  for (int i = 1; i < num_threads; ++i) threads.emplace_back([&work, i] { work(i); });
  work(0);
}

}  // namespace headrace::bench::cpu
