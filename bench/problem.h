// One row of the report made ready to run: a batch on cold caches, its plan and its buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "bench/device.h"
#include "bench/kv_pools.h"
#include "headrace/headrace.hpp"

namespace headrace::bench {

struct ProblemConfig {
  std::vector<std::int32_t> seq_lens;
  std::int32_t num_qo_heads;
  PoolShape pool;
  bool head_scales;  // random per-head K and V scales, else none
  std::size_t working_set_bytes;
  std::uint64_t seed;
};

class Problem {
 public:
  // Throws std::runtime_error where the library or the memory refuses.
  Problem(const Device& device, const ProblemConfig& config);

  // One decode step on the KV set that follows the previous one.
  void run_next();

  // K and V of all valid tokens: what one run has to read.
  std::size_t kv_bytes() const;

  const ProblemConfig& config() const { return config_; }
  const KvPools& pools() const { return pools_; }
  float sm_scale() const { return desc_.sm_scale; }
  std::int64_t last_set() const { return last_set_; }
  const std::byte* q() const { return q_.data(); }  // [num_requests, num_qo_heads, head_dim] bf16
  const std::byte* out() const { return out_.data(); }  // the same shape
  double k_scale(std::int32_t head) const;
  double v_scale(std::int32_t head) const;

 private:
  Problem(const Device& device, const ProblemConfig& config, Random random);
  void make_plan(const Device& device);

  ProblemConfig config_;
  KvPools pools_;
  headrace_attention_desc desc_;
  std::vector<std::byte> q_;
  std::vector<std::byte> out_;
  std::vector<float> k_scales_;  // [num_kv_heads]; empty for none
  std::vector<float> v_scales_;
  std::int64_t last_set_;
  Memory plan_buffer_;
  Memory workspace_;
  std::size_t workspace_bytes_ = 0;
  std::optional<Plan> plan_;
};

}  // namespace headrace::bench
