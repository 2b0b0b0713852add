// One row of the report made ready to run: a batch on cold caches, its plan and its buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/backend.h"
#include "bench/kv_sets.h"
#include "bench/launch.h"
#include "headrace/headrace.hpp"

namespace headrace::bench {

struct ProblemConfig {
  std::string profile;
  std::vector<std::int32_t> seq_lens;
  std::int32_t num_qo_heads;
  PoolShape pool;
  bool head_scales;  // random per-head K and V scales, else none
  std::uint64_t seed;

  // K and V of all valid tokens: what one run has to read.
  std::size_t kv_bytes() const;
};

class Problem {
 public:
  // Throws where the library or the memory refuses. The pools must outlive it.
  Problem(const Backend& backend, KvPools& pools, const ProblemConfig& config);

  // How the runs to come are started; plain at first.
  void set_launch(const Launch& launch) { launch_ = launch; }

  // One decode step on a KV set; on CUDA in the order of `stream`.
  // `timeline` as in headrace_run_args.
  void run(std::int64_t set, void* stream = nullptr, headrace_timeline_record* timeline = nullptr);

  headrace_run_args args(std::int64_t set, void* stream) const;
  std::string describe_plan() const { return plan_.describe(HEADRACE_PLAN_JSON); }
  std::size_t max_items() const { return plan_sizes_.max_items; }  // of a timeline
  const headrace_attention_desc& desc() const { return desc_; }
  const ProblemConfig& config() const { return config_; }
  std::int64_t num_sets() const { return sizes_.num_sets; }
  std::byte* out() const { return out_.get(); }  // [num_requests, num_qo_heads, head_dim] bf16
  std::size_t out_bytes() const { return out_bytes_; }

 private:
  ProblemConfig config_;
  Launch launch_;
  headrace_attention_desc desc_;
  headrace_plan_options plan_options_;
  headrace_plan_sizes plan_sizes_;
  Memory plan_buffer_;
  Memory workspace_;
  Plan plan_;

  const KvPools& pools_;
  SetSizes sizes_;
  Memory tables_;    // [num_sets, num_requests, table_stride] int32
  Memory seq_lens_;  // [num_requests] int32
  Memory scales_;    // [2, num_kv_heads] float: K, V
  Memory q_;         // as out
  Memory out_;
  std::size_t out_bytes_;
};

}  // namespace headrace::bench
