// The queue protocol under real threads, and under a race detector where the build has one: the
// partial results below are plain memory, ordered by the arrival counters alone.
#include "scheduler/queue.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/support/random.h"

namespace headrace::tests {
namespace {

// Random groups of 1 to 5 splits, in random order.
std::vector<scheduler::WorkItem> random_items(Random& random, std::size_t num_items) {
  std::vector<scheduler::WorkItem> items;
  std::uint32_t next_slot = 0;
  while (items.size() < num_items) {
    const auto left = static_cast<std::int64_t>(num_items - items.size());
    const auto count =
        static_cast<std::uint16_t>(random.between(1, std::min<std::int64_t>(left, 5)));
    for (std::uint16_t split = 0; split < count; ++split) {
      scheduler::WorkItem item{};
      item.split_index = split;
      item.split_count = count;
      item.first_slot = next_slot;
      items.push_back(item);
    }
    next_slot += count;
  }
  random.shuffle(items);
  return items;
}

// Workers that run the same items again and again on the same control words.
class QueueRun {
 public:
  QueueRun(std::vector<scheduler::WorkItem> items, std::uint32_t num_workers, int num_runs)
      : items_(std::move(items)),
        num_workers_(num_workers),
        num_runs_(num_runs),
        words_(scheduler::control_words(num_slots()), 0xFFFFFFFF),
        partials_(items_.size(), -1),
        claims_(items_.size()),
        merges_(items_.size()),
        run_ends_(num_workers, CheckRun{this}) {
    scheduler::initialise_control(words_.data(), num_slots());
  }

  // Returns how often anything was not as it must be.
  int num_failures() {
    std::vector<std::thread> workers;
    for (std::uint32_t worker = 0; worker < num_workers_; ++worker) {
      workers.emplace_back([this, worker] {
        for (int run = 0; run < num_runs_; ++run) {
          work(worker, run);
          run_ends_.arrive_and_wait();
        }
      });
    }
    for (std::thread& worker : workers) worker.join();
    return failures_;
  }

 private:
  // Runs in one thread when all workers have ended a run.
  struct CheckRun {
    QueueRun* run;
    void operator()() noexcept { run->check_run(); }
  };

  std::uint32_t num_slots() const { return static_cast<std::uint32_t>(items_.size()); }

  void work(std::uint32_t worker, int run) {
    const scheduler::Control control = scheduler::control_view(words_.data());
    std::uint32_t index = scheduler::first_claim(worker);
    while (index < items_.size()) {
      claims_[index].fetch_add(1, std::memory_order_relaxed);
      const scheduler::WorkItem& item = items_[index];
      if (item.split_count > 1) {
        partials_[scheduler::partial_slot(item)] = run;
        if (scheduler::arrive(control, item)) merge(item, run);
      }
      index = scheduler::next_claim(control, num_workers_);
    }
    scheduler::finish(control, num_workers_);
  }

  void merge(const scheduler::WorkItem& item, int run) {
    merges_[item.first_slot].fetch_add(1, std::memory_order_relaxed);
    for (std::uint32_t split = 0; split < item.split_count; ++split) {
      if (partials_[item.first_slot + split] != run) failures_.fetch_add(1);
    }
  }

  void check_run() {
    int failures = 0;
    for (std::atomic<int>& claims : claims_) failures += claims.exchange(0) != 1;
    for (const scheduler::WorkItem& item : items_) {
      if (item.split_count > 1 && item.split_index == 0) {
        failures += merges_[item.first_slot].exchange(0) != 1;
      }
    }
    for (const std::atomic<int>& merges : merges_) failures += merges != 0;
    for (const std::uint32_t word : words_) failures += word != 0;
    failures_.fetch_add(failures);
  }

  const std::vector<scheduler::WorkItem> items_;
  const std::uint32_t num_workers_;
  const int num_runs_;
  std::vector<std::uint32_t> words_;
  std::vector<int> partials_;             // [slot] the run that wrote it
  std::vector<std::atomic<int>> claims_;  // [item]
  std::vector<std::atomic<int>> merges_;  // [first slot]
  std::atomic<int> failures_ = 0;
  std::barrier<CheckRun> run_ends_;
};

void require_clean_runs(std::uint32_t num_workers, std::size_t num_items, int num_runs) {
  const std::uint64_t seed = 1000 * num_workers + num_items;
  INFO("seed " << seed << ", " << num_workers << " workers, " << num_items << " items");
  Random random(seed);
  QueueRun run(random_items(random, num_items), num_workers, num_runs);
  REQUIRE(run.num_failures() == 0);
}

}  // namespace

TEST_CASE("10,000 runs leave the control words zero, and every item is claimed and merged once") {
  require_clean_runs(4, 30, 10000);
}

TEST_CASE("one worker runs the whole queue") { require_clean_runs(1, 50, 1000); }

TEST_CASE("more workers than items") {
  require_clean_runs(8, 3, 500);
  require_clean_runs(8, 1, 500);
}

TEST_CASE("an empty queue") { require_clean_runs(4, 0, 500); }

TEST_CASE("a long queue") { require_clean_runs(3, 20000, 20); }

}  // namespace headrace::tests
