// The thin layer that gives the queue the same three atomic operations on both sides:
// std::atomic_ref on the host, cuda::atomic_ref with device scope in device code.
#pragma once

#include <atomic>
#include <cstdint>

#include "scheduler/host_device.h"

#if defined(__CUDACC__)
#include <cuda/atomic>
#endif

namespace headrace::scheduler {

#if defined(__CUDA_ARCH__)
using AtomicWord = ::cuda::atomic_ref<std::uint32_t, ::cuda::thread_scope_device>;
inline constexpr auto kRelaxed = ::cuda::memory_order_relaxed;
inline constexpr auto kAcquireRelease = ::cuda::memory_order_acq_rel;
#else
using AtomicWord = std::atomic_ref<std::uint32_t>;
inline constexpr auto kRelaxed = std::memory_order_relaxed;
inline constexpr auto kAcquireRelease = std::memory_order_acq_rel;
#endif

// Takes a number: orders nothing else.
HEADRACE_HOST_DEVICE std::uint32_t fetch_increment_relaxed(std::uint32_t& word) {
  return AtomicWord(word).fetch_add(1, kRelaxed);
}

// Publishes everything the caller wrote before, and sees what earlier callers published.
HEADRACE_HOST_DEVICE std::uint32_t fetch_increment_acquire_release(std::uint32_t& word) {
  return AtomicWord(word).fetch_add(1, kAcquireRelease);
}

HEADRACE_HOST_DEVICE void store_relaxed(std::uint32_t& word, std::uint32_t value) {
  AtomicWord(word).store(value, kRelaxed);
}

}  // namespace headrace::scheduler
