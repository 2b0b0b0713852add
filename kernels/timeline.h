// What happened to one work item and when, recorded by every kernel on request.
#pragma once

#include <cstdint>

namespace headrace::kernels {

// Nanoseconds of the device's clock: on a GPU its global timer, on a CPU std::chrono::steady_clock.
struct TimelineRecord {
  std::uint32_t worker;      // block or thread that ran the item
  std::uint32_t merged;      // 1: this item arrived last and merged
  std::uint64_t wanted;      // the worker asked for the item; of its first item, the worker began
  std::uint64_t claimed;     // the item is known
  std::uint64_t issued;      // its first copy is about to be issued
  std::uint64_t first_byte;  // its first stage has arrived
  std::uint64_t last_byte;   // its last stage has arrived
  std::uint64_t computed;    // all of its stages are computed
  std::uint64_t finished;    // output or partial is written, merge included
};

}  // namespace headrace::kernels
