// A program that uses an installed headrace from C++: one request of three tokens, all of them of
// the same weight because q is 0, so that out is the mean of V and lse is log(3).
#include <array>
#include <cmath>
#include <cstdio>
#include <exception>
#include <headrace/headrace.hpp>
#include <vector>

namespace {

constexpr int kHeadDim = 64;
constexpr int kPageSize = 4;
constexpr std::int32_t kTokens = 3;

bool compute() {
  const headrace::Context context(HEADRACE_DEVICE_AUTO, 2);
  headrace_attention_desc desc = headrace::attention_desc(1, 1, kHeadDim, 0.125f);
  desc.page_size = kPageSize;
  desc.q_dtype = desc.kv_dtype = desc.out_dtype = HEADRACE_FLOAT32;
  const headrace_plan_options options = headrace::plan_options(1, 4096);
  const headrace_plan_sizes sizes = context.plan_sizes(desc, options);
  const headrace::HostBuffer plan_buffer(sizes.plan_bytes, sizes.alignment);
  const headrace::HostBuffer workspace(sizes.workspace_bytes, sizes.alignment);
  headrace::Plan plan(context, desc, options, plan_buffer.span());

  const std::vector<float> q(kHeadDim), k(kPageSize * kHeadDim);
  std::vector<float> v(kPageSize * kHeadDim), out(kHeadDim);
  for (int i = 0; i < kTokens * kHeadDim; ++i) v[i] = static_cast<float>(i / kHeadDim);
  const std::array<std::int32_t, 1> seq_lens = {kTokens};
  const std::int32_t page = 0;
  float lse = 0;

  headrace_run_args args = headrace::run_args();
  args.num_requests = 1;
  args.q = q.data();
  args.k_cache = k.data();
  args.v_cache = v.data();
  args.num_pages = 1;
  args.block_table = &page;
  args.block_table_stride = 1;
  args.seq_lens = seq_lens.data();
  args.out = out.data();
  args.lse = &lse;
  args.workspace = workspace.span().data();
  args.workspace_bytes = workspace.span().size();
  plan.update(seq_lens);
  plan.run(args);

  std::printf("headrace %s on %s: out %g, lse %g\n", headrace_version(), context.info().description,
              out[0], lse);
  for (const float value : out) {
    if (std::abs(value - 1.0f) > 1e-5f) return false;
  }
  return std::abs(lse - 1.0986123f) < 1e-5f;
}

}  // namespace

int main() {
  try {
    return compute() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
