// The queue protocol: claim, arrival, end of run. The same code runs in CPU threads and in CUDA
// blocks. No function here waits: the last arriver merges, the last worker out resets the queue.
#pragma once

#include <cstddef>
#include <cstdint>

#include "scheduler/atomics.h"
#include "scheduler/host_device.h"
#include "scheduler/work_item.h"

namespace headrace::scheduler {

// The control words of one plan. Zeroed once by initialise_control(), never from outside again:
// every run leaves them zero. One run at a time may use them.
struct Control {
  std::uint32_t* claimed;   // claims beyond each worker's first
  std::uint32_t* finished;  // workers that found the queue empty
  std::uint32_t* arrivals;  // [max_partials], indexed by WorkItem::first_slot
};

// Words of different use lie in different 128-byte lines.
inline constexpr std::size_t kControlLineWords = 32;

HEADRACE_HOST_DEVICE std::size_t control_words(std::uint32_t max_partials) {
  return 2 * kControlLineWords + max_partials;
}

HEADRACE_HOST_DEVICE Control control_view(std::uint32_t* words) {
  return {words, words + kControlLineWords, words + 2 * kControlLineWords};
}

inline void initialise_control(std::uint32_t* words, std::uint32_t max_partials) {
  for (std::size_t i = 0; i < control_words(max_partials); ++i) words[i] = 0;
}

// Index of a worker's first item: its own index, at no cost. The queue is empty for this worker
// once an index is not below the number of items.
HEADRACE_HOST_DEVICE std::uint32_t first_claim(std::uint32_t worker) { return worker; }

// Index of a worker's next item. Relaxed: the number itself is all that is shared.
HEADRACE_HOST_DEVICE std::uint32_t next_claim(const Control& control, std::uint32_t num_workers) {
  return num_workers + fetch_increment_relaxed(*control.claimed);
}

// Says that this item's partial is written. Returns true to exactly one arriver per request and KV
// head, the last: it sees the partials of all the others (acquire-release on one word) and merges
// them. The counter is zero again afterwards; nobody else touches it before the next run.
HEADRACE_HOST_DEVICE bool arrive(const Control& control, const WorkItem& item) {
  std::uint32_t& counter = control.arrivals[item.first_slot];
  const bool last = fetch_increment_acquire_release(counter) + 1 == item.split_count;
  if (last) store_relaxed(counter, 0);
  return last;
}

// Called once by every worker of a run, after its last claim came back empty. The last one out
// zeroes the queue: all claims have happened before, and the next run starts after this one ends.
HEADRACE_HOST_DEVICE void finish(const Control& control, std::uint32_t num_workers) {
  if (fetch_increment_acquire_release(*control.finished) + 1 == num_workers) {
    store_relaxed(*control.claimed, 0);
    store_relaxed(*control.finished, 0);
  }
}

}  // namespace headrace::scheduler
