// Random tensors and the float64 reference, both computed on the GPU: a cache of gigabytes would
// take the host minutes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/headrace.h"

namespace headrace::bench::cuda {

// Normally distributed values of deviation 1; the same for the same seed.
void fill_normal(void* data, std::size_t elements, headrace_dtype dtype, std::uint64_t seed);

// Decode attention in float64, plain loops. out [num_requests, num_qo_heads, 128], lse
// [num_requests, num_qo_heads]; scores [sum of lengths * num_qo_heads] is scratch, and
// first_token [num_requests] the sum of the lengths before each request. All in device memory;
// packed strides of `desc`'s layout.
struct Reference {
  const headrace_attention_desc* desc;
  const headrace_run_args* args;
  const std::int64_t* first_token;
  double* scores;
  double* out;
  double* lse;
};
void compute_reference(const Reference& reference);

}  // namespace headrace::bench::cuda
