#include "bench/problem.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "bench/number_format.h"

namespace headrace::bench {
namespace {

headrace_attention_desc describe(const ProblemConfig& config) {
  headrace_attention_desc desc = headrace_attention_desc_default();
  desc.num_qo_heads = config.num_qo_heads;
  desc.num_kv_heads = config.pool.num_kv_heads;
  desc.head_dim = config.pool.head_dim;
  desc.page_size = config.pool.page_size;
  desc.kv_dtype = config.pool.dtype;
  desc.layout = config.pool.layout;
  desc.sm_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(config.pool.head_dim)));
  return desc;
}

std::vector<float> random_scales(std::int32_t num_heads, Random& random) {
  std::vector<float> scales(static_cast<std::size_t>(num_heads));
  for (float& scale : scales) scale = static_cast<float>(0.5 + random.uniform());
  return scales;
}

}  // namespace

Problem::Problem(const Device& device, const ProblemConfig& config)
    : Problem(device, config, Random(config.seed)) {}

Problem::Problem(const Device& device, const ProblemConfig& config, Random random)
    : config_(config),
      pools_(device, config.pool, config.seq_lens, config.working_set_bytes, random),
      desc_(describe(config)),
      last_set_(pools_.num_sets() - 1) {
  const NumberFormat bf16 = format_of(HEADRACE_BFLOAT16);
  const std::int64_t q_elements = static_cast<std::int64_t>(config.seq_lens.size()) *
                                  config.num_qo_heads * config.pool.head_dim;
  q_.resize(static_cast<std::size_t>(q_elements) * bf16.bytes());
  out_.resize(q_.size());
  for (std::int64_t i = 0; i < q_elements; ++i) {
    store(static_cast<float>(random.normal()), q_.data(), i, bf16);
  }
  if (config.head_scales) {
    k_scales_ = random_scales(config.pool.num_kv_heads, random);
    v_scales_ = random_scales(config.pool.num_kv_heads, random);
  }
  make_plan(device);
}

void Problem::make_plan(const Device& device) {
  headrace_plan_options options = headrace_plan_options_default();
  options.max_requests = static_cast<std::int32_t>(config_.seq_lens.size());
  for (const std::int32_t length : config_.seq_lens) {
    options.max_seq_len = std::max(options.max_seq_len, length);
  }
  const headrace_plan_sizes sizes = device.context().plan_sizes(desc_, options);
  plan_buffer_ = device.allocate(sizes.plan_bytes);
  workspace_ = device.allocate(sizes.workspace_bytes);
  workspace_bytes_ = sizes.workspace_bytes;
  plan_.emplace(device.context(), desc_, options, std::span(plan_buffer_.get(), sizes.plan_bytes));
  plan_->update(config_.seq_lens);
}

void Problem::run_next() {
  last_set_ = (last_set_ + 1) % pools_.num_sets();
  headrace_run_args args = headrace_run_args_default();
  args.num_requests = static_cast<std::int32_t>(config_.seq_lens.size());
  args.q = q_.data();
  args.k_cache = pools_.k();
  args.v_cache = pools_.v();
  args.num_pages = pools_.num_pages();
  args.block_table = pools_.block_table(last_set_);
  args.block_table_stride = pools_.table_stride();
  args.seq_lens = config_.seq_lens.data();
  args.k_scale = k_scales_.empty() ? nullptr : k_scales_.data();
  args.v_scale = v_scales_.empty() ? nullptr : v_scales_.data();
  args.out = out_.data();
  args.workspace = workspace_.get();
  args.workspace_bytes = workspace_bytes_;
  plan_->run(args);
}

std::size_t Problem::kv_bytes() const {
  std::size_t tokens = 0;
  for (const std::int32_t length : config_.seq_lens) tokens += static_cast<std::size_t>(length);
  return 2 * tokens * static_cast<std::size_t>(config_.pool.num_kv_heads * config_.pool.head_dim) *
         format_of(config_.pool.dtype).bytes();
}

double Problem::k_scale(std::int32_t head) const {
  return k_scales_.empty() ? 1.0 : k_scales_[static_cast<std::size_t>(head)];
}

double Problem::v_scale(std::int32_t head) const {
  return v_scales_.empty() ? 1.0 : v_scales_[static_cast<std::size_t>(head)];
}

}  // namespace headrace::bench
