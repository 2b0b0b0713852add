// Persistent worker threads for short parallel runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace headrace::runtime {

// N workers: the thread that calls run() is worker 0, N - 1 threads wait for it. A waiting thread
// spins for some microseconds, so that the next layer of a model finds it awake, then sleeps.
// Runs from several threads take turns.
class WorkerPool {
 public:
  // num_workers >= 1. Throws std::system_error or std::bad_alloc when threads cannot be started.
  explicit WorkerPool(std::uint32_t num_workers);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  std::uint32_t num_workers() const { return static_cast<std::uint32_t>(threads_.size()) + 1; }

  // Calls body(worker) once for every worker in [0, num_active), each in its own thread, and
  // returns when all have returned. What they wrote is visible to the caller. The body must not
  // throw. 1 <= num_active <= num_workers(); with 1 nobody is woken.
  template <typename Body>
  void run(std::uint32_t num_active, const Body& body) {
    if (num_active == 1) {
      body(std::uint32_t{0});
    } else {
      run_task(num_active, {[](const void* object, std::uint32_t worker) {
                              (*static_cast<const Body*>(object))(worker);
                            },
                            &body});
    }
  }

 private:
  struct Task {
    void (*call)(const void* object, std::uint32_t worker) = nullptr;
    const void* object = nullptr;
  };

  void run_task(std::uint32_t num_active, const Task& task);
  void serve(std::uint32_t worker) noexcept;
  void stop() noexcept;

  std::mutex one_run_;  // held for the length of a run
  // Written before `generation_` is raised (release), read by the threads after they see it
  // (acquire).
  Task task_;
  std::uint32_t num_active_ = 0;
  bool stopping_ = false;
  int spin_turns_;
  // On lines of their own: one is polled by all threads while the other counts them out.
  alignas(64) std::atomic<std::uint32_t> generation_ = 0;  // raised once per run
  alignas(64) std::atomic<std::uint32_t> num_busy_ = 0;    // threads that have not finished the run
  std::vector<std::thread> threads_;
};

}  // namespace headrace::runtime
