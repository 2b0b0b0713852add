#include "bench/problem.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "bench/number_format.h"
#include "bench/random.h"

namespace headrace::bench {
namespace {

headrace_attention_desc describe(const ProblemConfig& config) {
  headrace_attention_desc desc =
      attention_desc(config.num_qo_heads, config.pool.num_kv_heads, config.pool.head_dim,
                     static_cast<float>(1 / std::sqrt(static_cast<double>(config.pool.head_dim))));
  desc.page_size = config.pool.page_size;
  desc.kv_dtype = config.pool.dtype;
  desc.layout = config.pool.layout;
  return desc;
}

headrace_plan_options capacities(const ProblemConfig& config) {
  const std::int32_t longest = *std::max_element(config.seq_lens.begin(), config.seq_lens.end());
  return plan_options(static_cast<std::int32_t>(config.seq_lens.size()), std::max(longest, 1));
}

template <typename T>
Memory uploaded(const Backend& backend, const std::vector<T>& values) {
  Memory memory = backend.allocate(values.size() * sizeof(T));
  backend.upload(memory.get(), values.data(), values.size() * sizeof(T));
  return memory;
}

std::vector<float> random_scales(std::int32_t num_scales, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> scales(static_cast<std::size_t>(num_scales));
  for (float& scale : scales) scale = static_cast<float>(0.5 + random.uniform());
  return scales;
}

}  // namespace

std::size_t ProblemConfig::kv_bytes() const {
  std::size_t tokens = 0;
  for (const std::int32_t length : seq_lens) tokens += static_cast<std::size_t>(length);
  return 2 * tokens * pool.token_bytes();
}

Problem::Problem(const Backend& backend, KvPools& pools, const ProblemConfig& config)
    : config_(config),
      desc_(describe(config)),
      plan_options_(capacities(config)),
      plan_sizes_(backend.context().plan_sizes(desc_, plan_options_)),
      plan_buffer_(backend.allocate(plan_sizes_.plan_bytes)),
      workspace_(backend.allocate(plan_sizes_.workspace_bytes)),
      plan_(backend.context(), desc_, plan_options_, {plan_buffer_.get(), plan_sizes_.plan_bytes}),
      pools_(pools),
      sizes_(set_sizes(config.pool, config.seq_lens, backend.cold_bytes())) {
  plan_.update(config.seq_lens);
  pools.fill(sizes_.pool_bytes(), config.pool.dtype);
  tables_ = uploaded(
      backend, random_tables(sizes_, config.pool.page_size, config.seq_lens, config.seed + 2));
  seq_lens_ = uploaded(backend, config.seq_lens);
  if (config.head_scales) {
    scales_ = uploaded(backend, random_scales(2 * config.pool.num_kv_heads, config.seed + 3));
  }
  const std::int64_t elements = static_cast<std::int64_t>(config.seq_lens.size()) *
                                config.num_qo_heads * config.pool.head_dim;
  out_bytes_ = static_cast<std::size_t>(elements) * format_of(HEADRACE_BFLOAT16).bytes();
  out_ = backend.allocate(out_bytes_);
  q_ = backend.allocate(out_bytes_);
  backend.fill_normal(q_.get(), 0, elements, HEADRACE_BFLOAT16, config.seed + 4);
}

void Problem::run(std::int64_t set, void* stream, headrace_timeline_record* timeline) {
  headrace_run_args with_timeline = args(set, stream);
  with_timeline.timeline = timeline;
  plan_.run(with_timeline);
}

headrace_run_args Problem::args(std::int64_t set, void* stream) const {
  headrace_run_args args = run_args();
  args.num_requests = static_cast<std::int32_t>(config_.seq_lens.size());
  args.q = q_.get();
  args.k_cache = pools_.k();
  args.v_cache = pools_.v();
  args.num_pages = sizes_.num_pages();
  args.block_table = reinterpret_cast<const std::int32_t*>(tables_.get()) +
                     set * args.num_requests * sizes_.table_stride;
  args.block_table_stride = sizes_.table_stride;
  args.seq_lens = reinterpret_cast<const std::int32_t*>(seq_lens_.get());
  if (scales_ != nullptr) {
    args.k_scale = reinterpret_cast<const float*>(scales_.get());
    args.v_scale = args.k_scale + config_.pool.num_kv_heads;
  }
  args.out = out_.get();
  args.workspace = workspace_.get();
  args.workspace_bytes = plan_sizes_.workspace_bytes;
  args.stream = stream;
  if (launch_.is_dependent()) {
    args.dependent_launch = 1;
    args.fresh_tokens = launch_.fresh_tokens;
  }
  return args;
}

}  // namespace headrace::bench
