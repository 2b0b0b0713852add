#include "bench/cuda/problem.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "bench/cuda/reference.h"
#include "bench/random.h"

namespace headrace::bench::cuda {
namespace {

constexpr std::int64_t kHeadDim = 128;
// The sets together are many times the L2 cache (60 MB on an H200).
constexpr double kRotatedBytes = 800e6;
constexpr double kMaxSets = 64;

std::int64_t element_bytes(const headrace_attention_desc& desc) {
  return desc.kv_dtype == HEADRACE_FLOAT8_E4M3 ? 1 : 2;
}

std::int64_t pages_of(std::int32_t len, const headrace_attention_desc& desc) {
  return (std::int64_t{len} + desc.page_size - 1) / desc.page_size;
}

std::size_t kv_bytes_of(const ProblemConfig& config) {
  const auto tokens =
      std::accumulate(config.seq_lens.begin(), config.seq_lens.end(), std::int64_t{0});
  return static_cast<std::size_t>(2 * tokens * config.desc.num_kv_heads * kHeadDim *
                                  element_bytes(config.desc));
}

std::int64_t pages_per_set(const ProblemConfig& config) {
  std::int64_t pages = 0;
  for (const std::int32_t len : config.seq_lens) pages += pages_of(len, config.desc);
  return pages;
}

std::int32_t longest(const ProblemConfig& config) {
  return *std::max_element(config.seq_lens.begin(), config.seq_lens.end());
}

headrace_plan_options options_of(const ProblemConfig& config) {
  return plan_options(static_cast<std::int32_t>(config.seq_lens.size()), longest(config));
}

std::size_t pool_bytes(const ProblemConfig& config, std::int64_t num_pages) {
  return static_cast<std::size_t>(num_pages * config.desc.page_size * config.desc.num_kv_heads *
                                  kHeadDim * element_bytes(config.desc));
}

// Every set lists other pages, in random order; entries past a request's pages are invalid.
std::vector<std::int32_t> random_tables(const ProblemConfig& config, std::int32_t num_sets,
                                        std::int64_t num_pages, std::int64_t stride) {
  std::vector<std::int32_t> pages(static_cast<std::size_t>(num_pages));
  std::iota(pages.begin(), pages.end(), 0);
  Random(config.seed).shuffle(std::span(pages));
  std::vector<std::int32_t> tables;
  auto next = pages.begin();
  for (std::int32_t set = 0; set < num_sets; ++set) {
    for (const std::int32_t len : config.seq_lens) {
      const std::int64_t listed = pages_of(len, config.desc);
      tables.insert(tables.end(), next, next + listed);
      tables.insert(tables.end(), static_cast<std::size_t>(stride - listed), INT32_MAX);
      next += listed;
    }
  }
  return tables;
}

std::vector<float> random_scales(const ProblemConfig& config) {
  Random random(config.seed + 1);
  std::vector<float> scales(2 * static_cast<std::size_t>(config.desc.num_kv_heads));
  for (float& scale : scales) scale = static_cast<float>(0.5 + random.uniform());
  return scales;
}

double bf16_to_double(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

}  // namespace

Problem::Problem(const Context& context, const ProblemConfig& config)
    : config_(config),
      kv_bytes_(kv_bytes_of(config)),
      num_sets_(static_cast<std::int32_t>(std::clamp(
          std::ceil(kRotatedBytes / static_cast<double>(std::max<std::size_t>(kv_bytes_, 1))), 1.0,
          kMaxSets))),
      num_pages_(std::max<std::int64_t>(pages_per_set(config) * num_sets_, 1)),
      table_stride_(std::max<std::int64_t>(pages_of(longest(config), config.desc), 1)),
      k_(pool_bytes(config, num_pages_)),
      v_(pool_bytes(config, num_pages_)),
      tables_(random_tables(config, num_sets_, num_pages_, table_stride_)),
      seq_lens_(std::span<const std::int32_t>(config.seq_lens)),
      scales_(random_scales(config)),
      q_(config.seq_lens.size() * static_cast<std::size_t>(config.desc.num_qo_heads * kHeadDim) *
         2),
      out_(q_.size() / 2),
      plan_buffer_(context.plan_sizes(config.desc, options_of(config)).plan_bytes),
      workspace_(context.plan_sizes(config.desc, options_of(config)).workspace_bytes),
      plan_(context, config.desc, options_of(config), {plan_buffer_.data(), plan_buffer_.size()}) {
  const auto elements = k_.size() / static_cast<std::size_t>(element_bytes(config.desc));
  fill_normal(k_.data(), elements, config.desc.kv_dtype, config.seed + 2);
  fill_normal(v_.data(), elements, config.desc.kv_dtype, config.seed + 3);
  fill_normal(q_.data(), out_.size(), config.desc.q_dtype, config.seed + 4);
  plan_.update(config.seq_lens);
  cuda::check(cudaDeviceSynchronize(), "set-up");
}

headrace_run_args Problem::arguments(std::int32_t set, cudaStream_t stream) const {
  headrace_run_args args = run_args();
  args.num_requests = static_cast<std::int32_t>(config_.seq_lens.size());
  args.q = q_.data();
  args.k_cache = k_.data();
  args.v_cache = v_.data();
  args.num_pages = num_pages_;
  args.block_table = tables_.data() + set * args.num_requests * table_stride_;
  args.block_table_stride = table_stride_;
  args.seq_lens = seq_lens_.data();
  if (config_.desc.kv_dtype == HEADRACE_FLOAT8_E4M3) {
    args.k_scale = scales_.data();
    args.v_scale = scales_.data() + config_.desc.num_kv_heads;
  }
  args.out = out_.data();
  args.workspace = workspace_.data();
  args.workspace_bytes = workspace_.size();
  args.stream = stream;
  return args;
}

void Problem::run(std::int32_t set, cudaStream_t stream) { plan_.run(arguments(set, stream)); }

ErrorPct Problem::check() {
  const headrace_run_args args = arguments(0, nullptr);
  cuda::check(cudaMemset(out_.data(), 0xFF, out_.size() * 2), "cudaMemset");
  plan_.run(args);
  cuda::check(cudaDeviceSynchronize(), "run");

  std::vector<std::int64_t> first_token;
  std::int64_t tokens = 0;
  for (const std::int32_t len : config_.seq_lens) {
    first_token.push_back(tokens);
    tokens += len;
  }
  const Array<std::int64_t> offsets{std::span<const std::int64_t>(first_token)};
  const Array<double> scores(static_cast<std::size_t>(tokens * config_.desc.num_qo_heads));
  const Array<double> expected(out_.size());
  const Array<double> expected_lse(out_.size() / kHeadDim);
  compute_reference(
      {&config_.desc, &args, offsets.data(), scores.data(), expected.data(), expected_lse.data()});

  const std::vector<std::uint16_t> actual = out_.download();
  const std::vector<double> reference = expected.download();
  double error_squares = 0;
  double squares = 0;
  double max_error = 0;
  double max_value = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double error = std::abs(bf16_to_double(actual[i]) - reference[i]);
    error_squares += error * error;
    squares += reference[i] * reference[i];
    max_error = std::isnan(error) ? INFINITY : std::max(max_error, error);
    max_value = std::max(max_value, std::abs(reference[i]));
  }
  return {100 * std::sqrt(error_squares / squares), 100 * max_error / max_value};
}

}  // namespace headrace::bench::cuda
