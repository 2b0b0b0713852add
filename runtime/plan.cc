#include "runtime/plan.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "host/check.h"
#include "host/describe.h"
#include "runtime/argument_checks.h"
#include "runtime/status.h"

namespace host = headrace::host;
namespace kernels = headrace::kernels;
namespace runtime = headrace::runtime;
namespace scheduler = headrace::scheduler;

// The C structure is the kernels' record under another name.
static_assert(sizeof(headrace_timeline_record) == sizeof(kernels::TimelineRecord));
static_assert(offsetof(headrace_timeline_record, merged) ==
              offsetof(kernels::TimelineRecord, merged));
static_assert(offsetof(headrace_timeline_record, wanted) ==
              offsetof(kernels::TimelineRecord, wanted));
static_assert(offsetof(headrace_timeline_record, finished) ==
              offsetof(kernels::TimelineRecord, finished));

headrace_plan::headrace_plan(headrace_context& context, const runtime::PlanSetup& setup,
                             std::unique_ptr<runtime::PlanBuffer> buffer)
    : context_(context),
      setup_(setup),
      planner_(setup.planner),
      buffer_(std::move(buffer)),
      staged_header_{},
      staged_items_(setup.capacity.max_items) {
  planned_lens_.reserve(setup.planner.max_requests);
  planner_.plan(planned_lens_, staged_header_, staged_items_);
}

std::span<const scheduler::WorkItem> headrace_plan::items() const {
  return std::span(staged_items_).first(staged_header_.num_items);
}

headrace_status headrace_plan::update(const std::int32_t* seq_lens, std::int32_t num_requests,
                                      void* stream) {
  const auto max_requests = static_cast<std::int32_t>(setup_.planner.max_requests);
  if (!runtime::check_range("num_requests", num_requests, 0, INT32_MAX)) {
    return HEADRACE_INVALID_ARGUMENT;
  }
  if (num_requests > max_requests) {
    return runtime::fail(HEADRACE_OUT_OF_CAPACITY,
                         "num_requests is {}; needed: at most {}, the plan's max_requests",
                         num_requests, max_requests);
  }
  if (num_requests > 0 && !runtime::check_pointer("seq_lens", seq_lens, alignof(std::int32_t))) {
    return HEADRACE_INVALID_ARGUMENT;
  }
  const std::span lens(seq_lens, static_cast<std::size_t>(num_requests));
  const auto negative = std::find_if(lens.begin(), lens.end(), [](auto len) { return len < 0; });
  if (negative != lens.end()) {
    return runtime::fail(HEADRACE_INVALID_DATA, "seq_lens[{}] is {}; needed: 0 or more",
                         negative - lens.begin(), *negative);
  }

  planner_.plan(lens, staged_header_, staged_items_);
  headrace_status status = HEADRACE_OK;
  if (setup_.check_plans) {
    const std::string defect = host::check_plan(staged_header_, items(), setup_.capacity, lens);
    if (!defect.empty()) {
      status = runtime::fail(HEADRACE_INTERNAL, "the planner made a wrong plan: {}", defect);
    }
  }
  if (status == HEADRACE_OK) status = buffer_->publish(staged_header_, items(), stream);
  if (status == HEADRACE_OK) {
    planned_lens_.assign(lens.begin(), lens.end());
  } else {
    // What is staged is always what is published.
    planner_.plan(planned_lens_, staged_header_, staged_items_);
  }
  return status;
}

std::string headrace_plan::to_text() const {
  return host::plan_to_text(staged_header_, items(), planned_lens_);
}

std::string headrace_plan::to_json() const {
  return host::plan_to_json(staged_header_, items(), planned_lens_);
}

headrace_status headrace_plan::check_run_args(const headrace_run_args& args) const noexcept {
  const runtime::Description& desc = setup_.desc;
  const std::size_t num_planned = planned_lens_.size();
  if (static_cast<std::size_t>(args.num_requests) > num_planned) {
    return runtime::fail(HEADRACE_OUT_OF_CAPACITY,
                         "args.num_requests is {}; needed: at most {}, the requests of the last "
                         "headrace_plan_update()",
                         args.num_requests, num_planned);
  }
  // Page ids are int32, and offsets into a pool stay within 63 bits.
  const std::int64_t max_pages =
      std::min(std::int64_t{1} << 31, (std::int64_t{1} << 60) / std::max(desc.k.page, desc.v.page));
  const auto alignments = context_.executor->alignments(desc);
  if (!(runtime::check_pointer("args.q", args.q, alignments.q) &&
        runtime::check_pointer("args.k_cache", args.k_cache, alignments.cache) &&
        runtime::check_pointer("args.v_cache", args.v_cache, alignments.cache) &&
        runtime::check_range("args.num_pages", args.num_pages, 1, max_pages) &&
        runtime::check_pointer("args.block_table", args.block_table, alignof(std::int32_t)) &&
        runtime::check_range("args.block_table_stride", args.block_table_stride, 1,
                             runtime::kMaxStride) &&
        runtime::check_pointer("args.seq_lens", args.seq_lens, alignof(std::int32_t)) &&
        runtime::check_optional_pointer("args.k_scale", args.k_scale, alignof(float)) &&
        runtime::check_optional_pointer("args.v_scale", args.v_scale, alignof(float)) &&
        runtime::check_pointer("args.out", args.out, alignments.out) &&
        runtime::check_optional_pointer("args.lse", args.lse, alignof(float)) &&
        runtime::check_optional_pointer("args.timeline", args.timeline,
                                        alignof(headrace_timeline_record)) &&
        runtime::check_pointer("args.workspace", args.workspace, runtime::kBufferAlignment))) {
    return HEADRACE_INVALID_ARGUMENT;
  }
  return runtime::check_buffer_size("args.workspace_bytes", args.workspace_bytes,
                                    setup_.workspace_bytes);
}

kernels::DecodeParams headrace_plan::decode_params(const headrace_run_args& args) const noexcept {
  const runtime::Description& desc = setup_.desc;
  return {
      .q = args.q,
      .q_request_stride = desc.q.request,
      .q_head_stride = desc.q.head,
      .k = {args.k_cache, desc.k.page, desc.k.token, desc.k.head},
      .v = {args.v_cache, desc.v.page, desc.v.token, desc.v.head},
      .block_table = args.block_table,
      .block_table_stride = args.block_table_stride,
      .seq_lens = args.seq_lens,
      .k_scale = args.k_scale,
      .v_scale = args.v_scale,
      .out = args.out,
      .out_request_stride = desc.out.request,
      .out_head_stride = desc.out.head,
      .lse = args.lse,
      .lse_request_stride = desc.lse.request,
      .lse_head_stride = desc.lse.head,
      .timeline = reinterpret_cast<kernels::TimelineRecord*>(args.timeline),
      .partials = nullptr,  // the executor places them in the workspace
      .sm_scale = desc.sm_scale,
      .num_requests = args.num_requests,
      .num_qo_heads = desc.num_qo_heads,
      .num_kv_heads = desc.num_kv_heads,
      .head_dim = desc.head_dim,
      .page_size = desc.page_size,
      .num_pages = args.num_pages,
      .q_dtype = desc.q_dtype,
      .kv_dtype = desc.kv_dtype,
      .out_dtype = desc.out_dtype,
  };
}

headrace_status headrace_plan::run(const headrace_run_args& args) {
  if (!(runtime::check_struct_size("args", args.struct_size, sizeof(args)) &&
        runtime::check_range("args.num_requests", args.num_requests, 0, INT32_MAX) &&
        runtime::check_range("args.validate", args.validate, 0, 1) &&
        runtime::check_range("args.dependent_launch", args.dependent_launch, 0, 1) &&
        runtime::check_range("args.fresh_tokens", args.fresh_tokens, -1, INT32_MAX))) {
    return HEADRACE_INVALID_ARGUMENT;
  }
  if (args.num_requests == 0) return HEADRACE_OK;
  headrace_status status = check_run_args(args);
  if (status != HEADRACE_OK) return status;

  const kernels::DecodeParams params = decode_params(args);
  if (args.validate == 1) status = context_.executor->validate(params, args.stream);
  if (status != HEADRACE_OK) return status;
  return context_.executor->run(params, *buffer_, setup_.capacity, args.workspace,
                                {.stream = args.stream,
                                 .dependent = args.dependent_launch == 1,
                                 .fresh_tokens = args.fresh_tokens});
}
