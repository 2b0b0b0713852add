#include "runtime/worker_pool.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <thread>
#include <vector>

#include "tests/catch.h"

using headrace::runtime::WorkerPool;

namespace {

// How often each worker ran, as plain integers: the pool's own synchronisation must order them.
struct Counts {
  explicit Counts(std::uint32_t num_workers) : runs(num_workers, 0) {}
  void operator()(std::uint32_t worker) const { ++runs[worker]; }
  mutable std::vector<int> runs;
};

}  // namespace

TEST_CASE("every active worker runs once, the others not at all") {
  for (const std::uint32_t num_workers : {1u, 2u, 3u, 16u}) {
    WorkerPool pool(num_workers);
    CHECK(pool.num_workers() == num_workers);
    for (std::uint32_t active = 1; active <= num_workers; ++active) {
      const Counts counts(num_workers);
      pool.run(active, counts);
      for (std::uint32_t worker = 0; worker < num_workers; ++worker) {
        CHECK(counts.runs[worker] == (worker < active ? 1 : 0));
      }
    }
  }
}

TEST_CASE("worker 0 is the calling thread, the others are not") {
  WorkerPool pool(3);
  std::vector<std::thread::id> ids(3);
  pool.run(3, [&](std::uint32_t worker) { ids[worker] = std::this_thread::get_id(); });
  CHECK(ids[0] == std::this_thread::get_id());
  CHECK(ids[1] != ids[0]);
  CHECK(ids[2] != ids[0]);
  CHECK(ids[1] != ids[2]);
}

TEST_CASE("thousands of runs in a row") {
  WorkerPool pool(4);
  const Counts counts(4);
  for (int i = 0; i < 5000; ++i) pool.run(4, counts);
  for (const int runs : counts.runs) CHECK(runs == 5000);
}

TEST_CASE("runs after the workers went to sleep") {
  WorkerPool pool(3);
  const Counts counts(3);
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    pool.run(3, counts);
  }
  for (const int runs : counts.runs) CHECK(runs == 20);
}

TEST_CASE("runs from two threads take turns") {
  WorkerPool pool(3);
  std::atomic<int> inside = 0;
  std::atomic<int> overlaps = 0;
  const auto drive = [&] {
    for (int i = 0; i < 500; ++i) {
      const auto body = [&](std::uint32_t worker) {
        // Worker 0 is inside for as long as its run holds the pool.
        if (worker == 0 && inside.fetch_add(1) != 0) ++overlaps;
        if (worker == 0) inside.fetch_sub(1);
      };
      pool.run(3, body);
    }
  };
  std::thread other(drive);
  drive();
  other.join();
  CHECK(overlaps == 0);
}

TEST_CASE("a pool can be destroyed at once, and while its workers sleep") {
  for (int i = 0; i < 50; ++i) WorkerPool pool(4);
  WorkerPool sleeping(4);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

TEST_CASE("an idle pool uses no processor time") {
  WorkerPool pool(4);
  pool.run(4, [](std::uint32_t) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const double used_s = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  CHECK(used_s < 0.02);  // a single spinning thread would use 0.2
}
