#include "runtime/worker_pool.h"

#include <hwy/cache_control.h>

namespace headrace::runtime {
namespace {

// About 20 to 50 us: longer than the gap between two layers, far shorter than a scheduler's slice.
constexpr int kSpinTurns = 1000;

// Returns the word's value once it is no longer `old`; sees what the thread that changed it wrote.
std::uint32_t await_change(const std::atomic<std::uint32_t>& word, std::uint32_t old,
                           int spin_turns) noexcept {
  for (int turn = 0; turn < spin_turns; ++turn) {
    const std::uint32_t value = word.load(std::memory_order_acquire);
    if (value != old) return value;
    hwy::Pause();
  }
  word.wait(old, std::memory_order_acquire);
  return word.load(std::memory_order_acquire);
}

}  // namespace

WorkerPool::WorkerPool(std::uint32_t num_workers)
    // With more workers than processors a spinning thread would keep a working one from running.
    : spin_turns_(num_workers <= std::thread::hardware_concurrency() ? kSpinTurns : 0) {
  threads_.reserve(num_workers - 1);
  try {
    for (std::uint32_t worker = 1; worker < num_workers; ++worker) {
      threads_.emplace_back([this, worker] { serve(worker); });
    }
  } catch (...) {
    stop();
    throw;
  }
}

WorkerPool::~WorkerPool() { stop(); }

void WorkerPool::stop() noexcept {
  stopping_ = true;
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::run_task(std::uint32_t num_active, const Task& task) {
  const std::lock_guard lock(one_run_);
  task_ = task;
  num_active_ = num_active;
  num_busy_.store(static_cast<std::uint32_t>(threads_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();

  task.call(task.object, 0);

  // Every thread counts itself out of every run, active or not: none may read task_ when the next
  // run writes it.
  std::uint32_t busy = num_busy_.load(std::memory_order_acquire);
  while (busy != 0) busy = await_change(num_busy_, busy, spin_turns_);
}

void WorkerPool::serve(std::uint32_t worker) noexcept {
  std::uint32_t generation = 0;
  for (;;) {
    generation = await_change(generation_, generation, spin_turns_);
    if (stopping_) return;
    if (worker < num_active_) task_.call(task_.object, worker);
    if (num_busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) num_busy_.notify_one();
  }
}

}  // namespace headrace::runtime
