#include "tests/support/run_plan.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "kernels/cpu/decode.h"
#include "kernels/decode_params.h"
#include "tests/support/device_buffer.h"

namespace headrace::tests {
namespace {

static_assert(HEADRACE_BFLOAT16 == static_cast<int>(kernels::DType::kBFloat16));
static_assert(HEADRACE_FLOAT16 == static_cast<int>(kernels::DType::kFloat16));
static_assert(HEADRACE_FLOAT32 == static_cast<int>(kernels::DType::kFloat32));
static_assert(HEADRACE_FLOAT8_E4M3 == static_cast<int>(kernels::DType::kFloat8E4M3));

kernels::DecodeParams decode_params(const Problem& problem, const ProblemMemory& memory,
                                    const DeviceBuffer& partials) {
  const headrace_attention_desc& desc = problem.desc;
  const headrace_run_args args = memory.args();
  const auto pool = [](const void* data, const PoolView& view) {
    return kernels::PagedPool{data, view.page_stride, view.token_stride, view.head_stride};
  };
  return {
      .q = args.q,
      .q_request_stride = problem.q_rows.request_stride,
      .q_head_stride = problem.q_rows.head_stride,
      .k = pool(args.k_cache, problem.k),
      .v = pool(args.v_cache, problem.v),
      .block_table = args.block_table,
      .block_table_stride = args.block_table_stride,
      .seq_lens = args.seq_lens,
      .k_scale = args.k_scale,
      .v_scale = args.v_scale,
      .out = args.out,
      .out_request_stride = problem.out_rows.request_stride,
      .out_head_stride = problem.out_rows.head_stride,
      .lse = args.lse,
      .lse_request_stride = problem.lse_rows.request_stride,
      .lse_head_stride = problem.lse_rows.head_stride,
      .timeline = nullptr,
      .partials = static_cast<float*>(partials.data()),
      .sm_scale = desc.sm_scale,
      .num_requests = args.num_requests,
      .num_qo_heads = desc.num_qo_heads,
      .num_kv_heads = desc.num_kv_heads,
      .head_dim = desc.head_dim,
      .page_size = desc.page_size,
      .num_pages = args.num_pages,
      .q_dtype = static_cast<kernels::DType>(desc.q_dtype),
      .kv_dtype = static_cast<kernels::DType>(desc.kv_dtype),
      .out_dtype = static_cast<kernels::DType>(desc.out_dtype),
  };
}

}  // namespace

HandPlan empty_plan(const Problem& problem, std::uint32_t tile_tokens,
                    std::int32_t kv_heads_per_item) {
  HandPlan plan;
  plan.header.num_requests = static_cast<std::uint32_t>(problem.num_requests());
  plan.header.num_kv_heads =
      static_cast<std::uint32_t>(problem.desc.num_kv_heads / kv_heads_per_item);
  plan.header.tile_tokens = tile_tokens;
  plan.header.num_workers = 1;
  return plan;
}

void add_head(HandPlan& plan, std::size_t request, std::int32_t kv_head,
              std::span<const std::uint32_t> share_ends) {
  const auto split_count = static_cast<std::uint16_t>(share_ends.size());
  std::uint32_t begin = 0;
  for (std::uint16_t split = 0; split < split_count; ++split) {
    plan.items.push_back({.request = static_cast<std::uint16_t>(request),
                          .kv_head = static_cast<std::uint16_t>(kv_head),
                          .share_begin = static_cast<std::uint16_t>(begin),
                          .share_last = static_cast<std::uint16_t>(share_ends[split] - 1),
                          .split_index = split,
                          .split_count = split_count,
                          .first_slot = plan.header.num_partials});
    begin = share_ends[split];
  }
  if (split_count > 1) plan.header.num_partials += split_count;
  plan.header.num_items = static_cast<std::uint32_t>(plan.items.size());
}

std::vector<Result> run_plan(const Problem& problem, const HandPlan& plan,
                             std::uint32_t num_workers, int num_runs, bool want_lse) {
  const auto device = HEADRACE_DEVICE_CPU;
  const scheduler::PlanCapacity capacity = {plan.header.num_items, plan.header.num_partials};
  const scheduler::PlanLayout layout = scheduler::plan_layout(capacity);
  const DeviceBuffer buffer(device, layout.total_bytes, Guards::kBytes);
  auto* const bytes = static_cast<std::byte*>(buffer.data());
  scheduler::initialise_control(static_cast<std::uint32_t*>(buffer.data()), capacity.max_partials);
  std::memcpy(bytes + layout.header_offset, &plan.header, sizeof(plan.header));
  std::ranges::copy(std::as_bytes(std::span(plan.items)), bytes + layout.items_offset);
  const scheduler::PlanView view = scheduler::plan_view(buffer.data(), layout);

  const auto num_kv_heads = static_cast<std::uint32_t>(problem.desc.num_kv_heads);
  const std::uint32_t kv_heads_per_item = num_kv_heads / plan.header.num_kv_heads;
  const auto head_dim = static_cast<std::size_t>(problem.desc.head_dim);
  const auto group = static_cast<std::size_t>(problem.group());
  const std::size_t slot_bytes =
      kv_heads_per_item * kernels::partial_floats(group, head_dim) * sizeof(float);
  const DeviceBuffer partials(device, capacity.max_partials * slot_bytes, Guards::kBytes);
  std::vector<DeviceBuffer> scratch;
  for (std::uint32_t i = 0; i < num_workers; ++i) {
    scratch.emplace_back(device,
                         cpu::worker_scratch_bytes(problem.group(), problem.desc.head_dim,
                                                   static_cast<std::int32_t>(kv_heads_per_item)),
                         Guards::kBytes);
  }

  std::vector<Result> results;
  for (int run = 0; run < num_runs; ++run) {
    const ProblemMemory memory(problem, device, Guards::kBytes, want_lse);
    const kernels::DecodeParams params = decode_params(problem, memory, partials);
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 0; i < num_workers; ++i) {
      threads.emplace_back(
          [&, i] { cpu::run_worker(params, view, i, num_workers, scratch[i].data()); });
    }
    threads.clear();  // joins
    results.push_back(memory.collect());
  }
  const auto intact = [](const DeviceBuffer& b) { return b.guards_intact(); };
  if (!(intact(buffer) && intact(partials) && std::ranges::all_of(scratch, intact))) {
    results.back().damage += "something around plan, partials or scratch was written; ";
  }
  return results;
}

}  // namespace headrace::tests
