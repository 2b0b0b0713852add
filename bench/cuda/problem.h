// One row of the GPU benchmark made ready to run: several KV sets in turn, so that L2 is cold.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/cuda/device.h"
#include "headrace/headrace.hpp"

namespace headrace::bench::cuda {

struct ProblemConfig {
  std::vector<std::int32_t> seq_lens;
  headrace_attention_desc desc;  // packed strides
  std::uint64_t seed;
};

struct ErrorPct {
  double rms;  // of the error over the RMS of the reference
  double max;  // largest error over the largest reference value
};

class Problem {
 public:
  Problem(const Context& context, const ProblemConfig& config);

  std::int32_t num_sets() const { return num_sets_; }
  std::size_t kv_bytes() const { return kv_bytes_; }  // K and V of all valid tokens of one set

  // Launches the step on KV set `set`; the queries are the same for all sets.
  void run(std::int32_t set, cudaStream_t stream);

  // Against float64, on set 0.
  ErrorPct check();

 private:
  headrace_run_args arguments(std::int32_t set, cudaStream_t stream) const;

  ProblemConfig config_;
  std::size_t kv_bytes_;
  std::int32_t num_sets_;
  std::int64_t num_pages_;
  std::int64_t table_stride_;
  Array<std::byte> k_;
  Array<std::byte> v_;
  Array<std::int32_t> tables_;  // [num_sets, num_requests, table_stride]
  Array<std::int32_t> seq_lens_;
  Array<float> scales_;  // [2, num_kv_heads]: K, V
  Array<std::byte> q_;
  Array<std::uint16_t> out_;
  Array<std::byte> plan_buffer_;
  Array<std::byte> workspace_;
  Plan plan_;
};

}  // namespace headrace::bench::cuda
