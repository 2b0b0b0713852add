#include "tests/api/uniform_problem.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headrace::tests {
namespace {

constexpr std::size_t kGuardBytes = 256;
constexpr std::byte kGuard{0xA5};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::int64_t pages_of(std::int64_t len) {
  return (len + UniformProblem::kPageSize - 1) / UniformProblem::kPageSize;
}

std::int64_t longest_row(const std::vector<std::int32_t>& lens) {
  std::int64_t longest = 1;
  for (const std::int32_t len : lens) longest = std::max(longest, pages_of(len));
  return longest + 1;  // at least one entry of every row is not in use
}

bool close(float value, double expected) {
  return std::abs(value - expected) <= 1e-5 * std::max(1.0, std::abs(expected));
}

}  // namespace

GuardedBuffer::GuardedBuffer(std::size_t bytes, std::size_t alignment)
    : bytes_(bytes), memory_(bytes + alignment + 2 * kGuardBytes, kGuard) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.data()) + kGuardBytes;
  offset_ = kGuardBytes + (alignment - address % alignment) % alignment;
  std::ranges::fill(span(), std::byte{0xFF});
}

bool GuardedBuffer::guards_intact() const {
  const auto is_guard = [](std::byte value) { return value == kGuard; };
  const std::span all(memory_);
  return std::ranges::all_of(all.first(offset_), is_guard) &&
         std::ranges::all_of(all.subspan(offset_ + bytes_), is_guard);
}

UniformProblem::UniformProblem(std::vector<std::int32_t> lens)
    : seq_lens(std::move(lens)),
      block_table_stride(longest_row(seq_lens)),
      block_table(seq_lens.size() * static_cast<std::size_t>(block_table_stride),
                  std::numeric_limits<std::int32_t>::max()),
      num_pages(1),
      q(seq_lens.size() * kQoHeads * kHeadDim, 0.0f),
      out(q.size() * sizeof(float)),
      lse(seq_lens.size() * kQoHeads * sizeof(float)) {
  for (const std::int32_t len : seq_lens) num_pages += pages_of(len);
  const std::size_t pool_size =
      static_cast<std::size_t>(num_pages) * kPageSize * kKvHeads * kHeadDim;
  k_cache.assign(pool_size, kNan);
  v_cache.assign(pool_size, kNan);

  std::int64_t next_page = num_pages;
  for (std::size_t r = 0; r < seq_lens.size(); ++r) {
    for (std::int32_t t = 0; t < seq_lens[r]; ++t) {
      if (t % kPageSize == 0) --next_page;
      block_table[r * static_cast<std::size_t>(block_table_stride) +
                  static_cast<std::size_t>(t / kPageSize)] = static_cast<std::int32_t>(next_page);
      for (std::int32_t g = 0; g < kKvHeads; ++g) {
        const std::size_t row = ((static_cast<std::size_t>(next_page) * kPageSize +
                                  static_cast<std::size_t>(t % kPageSize)) *
                                     kKvHeads +
                                 static_cast<std::size_t>(g)) *
                                kHeadDim;
        std::fill_n(k_cache.begin() + static_cast<std::ptrdiff_t>(row), kHeadDim, 1.0f);
        std::fill_n(v_cache.begin() + static_cast<std::ptrdiff_t>(row), kHeadDim,
                    1000.0f * static_cast<float>(r) + 100.0f * static_cast<float>(g) +
                        static_cast<float>(t));
      }
    }
  }
  clear_results();
}

headrace_attention_desc UniformProblem::desc() const {
  headrace_attention_desc desc = attention_desc(kQoHeads, kKvHeads, kHeadDim, 0.125f);
  desc.page_size = kPageSize;
  desc.q_dtype = desc.kv_dtype = desc.out_dtype = HEADRACE_FLOAT32;
  return desc;
}

headrace_plan_options UniformProblem::options() const {
  return plan_options(static_cast<std::int32_t>(seq_lens.size()), 1 << 16);
}

headrace_run_args UniformProblem::args() {
  headrace_run_args args = run_args();
  args.num_requests = static_cast<std::int32_t>(seq_lens.size());
  args.q = q.data();
  args.k_cache = k_cache.data();
  args.v_cache = v_cache.data();
  args.num_pages = num_pages;
  args.block_table = block_table.data();
  args.block_table_stride = block_table_stride;
  args.seq_lens = seq_lens.data();
  args.out = out.data();
  args.lse = lse.as<float>().data();
  return args;
}

void UniformProblem::clear_results() {
  std::ranges::fill(out.as<float>(), kNan);
  std::ranges::fill(lse.as<float>(), kNan);
}

bool UniformProblem::results_right() {
  for (std::size_t r = 0; r < seq_lens.size(); ++r) {
    const std::int32_t len = seq_lens[r];
    for (std::size_t h = 0; h < kQoHeads; ++h) {
      const auto g = static_cast<double>(h / (kQoHeads / kKvHeads));
      const double mean =
          len == 0 ? 0 : 1000.0 * static_cast<double>(r) + 100 * g + (len - 1) / 2.0;
      for (const float value : out.as<float>().subspan((r * kQoHeads + h) * kHeadDim, kHeadDim)) {
        if (!close(value, mean)) return false;
      }
      const float value = lse.as<float>()[r * kQoHeads + h];
      if (len == 0 ? value != -std::numeric_limits<float>::infinity()
                   : !close(value, std::log(len))) {
        return false;
      }
    }
  }
  return out.guards_intact() && lse.guards_intact();
}

PreparedPlan::PreparedPlan(const Context& context, UniformProblem& problem)
    : sizes(context.plan_sizes(problem.desc(), problem.options())),
      buffer(sizes.plan_bytes),
      workspace(sizes.workspace_bytes),
      plan(context, problem.desc(), problem.options(), buffer.span()) {
  plan.update(problem.seq_lens);
}

headrace_run_args PreparedPlan::args(UniformProblem& problem) {
  headrace_run_args args = problem.args();
  args.workspace = workspace.data();
  args.workspace_bytes = sizes.workspace_bytes;
  return args;
}

}  // namespace headrace::tests
