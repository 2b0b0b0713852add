// A problem small enough to know the answer by hand, in float32 throughout.
//
// q is 0, so all tokens of a request weigh the same: out is the mean of V and lse is log(seq_len).
// V of token t of request r under KV head g is 1000 r + 100 g + t in every component, so the mean
// is 1000 r + 100 g + (seq_len - 1) / 2. Pages lie in the pool in descending order; every cache
// element and table entry that is not in use is poison.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/headrace.hpp"

namespace headrace::tests {

// Memory of an exact size between two guard zones, filled with 0xFF.
class GuardedBuffer {
 public:
  GuardedBuffer(std::size_t bytes, std::size_t alignment = 128);

  std::span<std::byte> span() { return {memory_.data() + offset_, bytes_}; }
  void* data() { return span().data(); }
  template <typename T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(data()), bytes_ / sizeof(T)};
  }
  // Whether the guard zones are as they were made.
  bool guards_intact() const;
  // Everything, guard zones included.
  const std::vector<std::byte>& memory() const { return memory_; }

 private:
  std::size_t bytes_;
  std::size_t offset_;
  std::vector<std::byte> memory_;
};

class UniformProblem {
 public:
  static constexpr std::int32_t kQoHeads = 4;
  static constexpr std::int32_t kKvHeads = 2;
  static constexpr std::int32_t kHeadDim = 64;
  static constexpr std::int32_t kPageSize = 4;

  explicit UniformProblem(std::vector<std::int32_t> lens);

  headrace_attention_desc desc() const;
  headrace_plan_options options() const;
  // Arguments of a run over all requests. The workspace is the caller's to set.
  headrace_run_args args();

  // Fills out and lse with NaN.
  void clear_results();
  // Whether out and lse are right, and nothing around them was written.
  bool results_right();

  std::vector<std::int32_t> seq_lens;
  std::int64_t block_table_stride;        // entries per row
  std::vector<std::int32_t> block_table;  // [requests, block_table_stride]
  std::int64_t num_pages;
  std::vector<float> q;        // [requests, kQoHeads, kHeadDim]
  std::vector<float> k_cache;  // [num_pages, kPageSize, kKvHeads, kHeadDim]
  std::vector<float> v_cache;
  GuardedBuffer out;  // [requests, kQoHeads, kHeadDim]
  GuardedBuffer lse;  // [requests, kQoHeads]
};

// A plan with its two buffers, made for a problem and updated with its lengths.
struct PreparedPlan {
  PreparedPlan(const Context& context, UniformProblem& problem);

  // The problem's arguments with this plan's workspace.
  headrace_run_args args(UniformProblem& problem);

  headrace_plan_sizes sizes;
  GuardedBuffer buffer;
  GuardedBuffer workspace;
  Plan plan;
};

}  // namespace headrace::tests
