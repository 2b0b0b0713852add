#include "runtime/description.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/argument_checks.h"
#include "runtime/status.h"
#include "runtime/strides.h"
#include "scheduler/work_item.h"

namespace headrace::runtime {
namespace {

constexpr std::array kHeadDims = {64, 80, 96, 128, 192, 256};

static_assert(HEADRACE_BFLOAT16 == static_cast<int>(kernels::DType::kBFloat16));
static_assert(HEADRACE_FLOAT16 == static_cast<int>(kernels::DType::kFloat16));
static_assert(HEADRACE_FLOAT32 == static_cast<int>(kernels::DType::kFloat32));
static_assert(HEADRACE_FLOAT8_E4M3 == static_cast<int>(kernels::DType::kFloat8E4M3));

headrace_status check_heads(const headrace_attention_desc& desc) noexcept {
  if (!(check_range("desc.num_kv_heads", desc.num_kv_heads, 1, scheduler::kMaxKvHeads) &&
        check_range("desc.num_qo_heads", desc.num_qo_heads, 1, INT32_MAX))) {
    return HEADRACE_INVALID_ARGUMENT;
  }
  if (desc.num_qo_heads % desc.num_kv_heads != 0) {
    return fail(HEADRACE_INVALID_ARGUMENT,
                "desc.num_qo_heads is {}; needed: a multiple of desc.num_kv_heads, which is {}",
                desc.num_qo_heads, desc.num_kv_heads);
  }
  const std::int32_t group = desc.num_qo_heads / desc.num_kv_heads;
  if (group > kMaxGroup) {
    return fail(HEADRACE_UNSUPPORTED,
                "desc.num_qo_heads / desc.num_kv_heads is {} / {} = {}; needed: at most {}",
                desc.num_qo_heads, desc.num_kv_heads, group, kMaxGroup);
  }
  return HEADRACE_OK;
}

headrace_status check_head_dim(std::int32_t head_dim) noexcept {
  if (std::find(kHeadDims.begin(), kHeadDims.end(), head_dim) != kHeadDims.end()) {
    return HEADRACE_OK;
  }
  return fail(head_dim < 1 ? HEADRACE_INVALID_ARGUMENT : HEADRACE_UNSUPPORTED,
              "desc.head_dim is {}; needed: 64, 80, 96, 128, 192 or 256", head_dim);
}

// fp8 is for caches: queries and outputs are never quantised.
headrace_status check_dtype(const char* name, const headrace_dtype& dtype, bool cache) noexcept {
  const int value = raw_value(dtype);
  if (!check_range(name, value, HEADRACE_BFLOAT16, HEADRACE_FLOAT8_E4M3)) {
    return HEADRACE_INVALID_ARGUMENT;
  }
  if (value == HEADRACE_FLOAT8_E4M3 && !cache) {
    return fail(HEADRACE_UNSUPPORTED,
                "{} is HEADRACE_FLOAT8_E4M3 (3), which only caches may have; needed: "
                "HEADRACE_BFLOAT16 (0), HEADRACE_FLOAT16 (1) or HEADRACE_FLOAT32 (2)",
                name);
  }
  return HEADRACE_OK;
}

headrace_status check_scalars(const headrace_attention_desc& desc) noexcept {
  if (!(check_range("desc.page_size", desc.page_size, 1, kMaxPageSize) &&
        check_range("desc.layout", raw_value(desc.layout), HEADRACE_NHD, HEADRACE_HND))) {
    return HEADRACE_INVALID_ARGUMENT;
  }
  if (!std::isfinite(desc.sm_scale)) {
    return fail(HEADRACE_INVALID_ARGUMENT, "desc.sm_scale is {}; needed: a finite number",
                desc.sm_scale);
  }
  return HEADRACE_OK;
}

}  // namespace

headrace_status resolve_description(const headrace_attention_desc& desc, std::int32_t max_requests,
                                    Description& resolved) noexcept {
  if (!check_struct_size("desc", desc.struct_size, sizeof(desc))) return HEADRACE_INVALID_ARGUMENT;
  headrace_status status = check_heads(desc);
  if (status == HEADRACE_OK) status = check_head_dim(desc.head_dim);
  if (status == HEADRACE_OK) status = check_scalars(desc);
  if (status == HEADRACE_OK) status = check_dtype("desc.q_dtype", desc.q_dtype, false);
  if (status == HEADRACE_OK) status = check_dtype("desc.kv_dtype", desc.kv_dtype, true);
  if (status == HEADRACE_OK) status = check_dtype("desc.out_dtype", desc.out_dtype, false);
  if (status != HEADRACE_OK) return status;

  const auto dtype = [](const headrace_dtype& value) {
    return static_cast<kernels::DType>(raw_value(value));
  };
  Description result{
      .num_qo_heads = desc.num_qo_heads,
      .num_kv_heads = desc.num_kv_heads,
      .group = desc.num_qo_heads / desc.num_kv_heads,
      .head_dim = desc.head_dim,
      .page_size = desc.page_size,
      .q_dtype = dtype(desc.q_dtype),
      .kv_dtype = dtype(desc.kv_dtype),
      .out_dtype = dtype(desc.out_dtype),
      .sm_scale = desc.sm_scale,
      .k = {desc.k_page_stride, desc.k_token_stride, desc.k_head_stride},
      .v = {desc.v_page_stride, desc.v_token_stride, desc.v_head_stride},
      .q = {desc.q_request_stride, desc.q_head_stride},
      .out = {desc.out_request_stride, desc.out_head_stride},
      .lse = {desc.lse_request_stride, desc.lse_head_stride},
  };
  const std::int32_t heads = desc.num_qo_heads;
  if (!(resolve_pool_strides("k", desc, result.k) && resolve_pool_strides("v", desc, result.v) &&
        resolve_row_strides("q", max_requests, heads, desc.head_dim, result.q) &&
        resolve_row_strides("out", max_requests, heads, desc.head_dim, result.out) &&
        resolve_row_strides("lse", max_requests, heads, 1, result.lse))) {
    return HEADRACE_INVALID_ARGUMENT;
  }
  resolved = result;
  return HEADRACE_OK;
}

}  // namespace headrace::runtime
