#include "tests/support/tested_device.h"

namespace headrace::tests {
namespace {

bool is_cuda() { return kTestedDevice == HEADRACE_DEVICE_CUDA; }

bool has_16_bits(headrace_dtype dtype) {
  return dtype == HEADRACE_BFLOAT16 || dtype == HEADRACE_FLOAT16;
}

}  // namespace

bool supported(const ProblemSpec& spec) {
  if (!is_cuda()) return true;
  return has_16_bits(spec.q_dtype) && has_16_bits(spec.out_dtype) &&
         (spec.kv_dtype == spec.q_dtype || spec.kv_dtype == HEADRACE_FLOAT8_E4M3) &&
         spec.head_dim == 128 && spec.page_size % 8 == 0;
}

void set_cache_dtype(ProblemSpec& spec, headrace_dtype dtype) {
  spec.kv_dtype = dtype;
  if (is_cuda() && has_16_bits(dtype)) spec.q_dtype = dtype;
}

headrace_dtype widest_out_dtype() { return is_cuda() ? HEADRACE_BFLOAT16 : HEADRACE_FLOAT32; }

std::int32_t smallest_head_dim() { return is_cuda() ? 128 : 64; }

std::int32_t many_workers() { return is_cuda() ? 132 : 5; }

}  // namespace headrace::tests
