#include "kernels/cpu/partial.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/convert.h"

namespace headrace::cpu {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

std::size_t group_size(const kernels::DecodeParams& params) {
  return static_cast<std::size_t>(params.num_qo_heads / params.num_kv_heads);
}

}  // namespace

float relative_weight(float max, float base) {
  if (max == base && std::isfinite(max)) return 1.0f;
  if (max == kMinusInfinity) return 0.0f;
  return static_cast<float>(std::exp(static_cast<double>(max) - static_cast<double>(base)));
}

void merge_partials(const kernels::DecodeParams& params, const scheduler::WorkItem& item,
                    const Partial& merged) {
  const std::size_t group = group_size(params);
  const auto head_dim = static_cast<std::size_t>(params.head_dim);
  const std::size_t slot_floats = kernels::partial_floats(group, head_dim);
  float* const first = params.partials + item.first_slot * slot_floats;
  const auto split = [&](std::size_t index) {
    return partial_view(first + index * slot_floats, group, head_dim);
  };

  std::fill_n(merged.max, group, kMinusInfinity);
  for (std::size_t s = 0; s < item.split_count; ++s) {
    for (std::size_t h = 0; h < group; ++h) {
      merged.max[h] = std::max(merged.max[h], split(s).max[h]);
    }
  }

  std::fill_n(merged.out, group * head_dim, 0.0f);
  std::fill_n(merged.sum, group, 0.0f);
  for (std::size_t s = 0; s < item.split_count; ++s) {
    const Partial partial = split(s);
    for (std::size_t h = 0; h < group; ++h) {
      const float weight = relative_weight(partial.max[h], merged.max[h]);
      merged.sum[h] += weight * partial.sum[h];
      for (std::size_t d = h * head_dim; d < (h + 1) * head_dim; ++d) {
        merged.out[d] += weight * partial.out[d];
      }
    }
  }
}

void write_result(const kernels::DecodeParams& params, const scheduler::WorkItem& item,
                  const Partial& result) {
  const std::size_t group = group_size(params);
  const auto head_dim = static_cast<std::size_t>(params.head_dim);
  const double v_scale = params.v_scale == nullptr ? 1.0 : params.v_scale[item.kv_head];
  for (std::size_t h = 0; h < group; ++h) {
    const auto head = static_cast<std::int64_t>(item.kv_head * group + h);
    float* const row = result.out + h * head_dim;
    const float sum = result.sum[h];
    // Without tokens the sum is 0 and so is the row; dividing would make it NaN.
    const double scale = sum == 0.0f ? 0.0 : v_scale / sum;
    for (std::size_t d = 0; d < head_dim; ++d) row[d] = static_cast<float>(row[d] * scale);
    store_row(params.out_dtype, row, head_dim, params.out,
              item.request * params.out_request_stride + head * params.out_head_stride);
    if (params.lse != nullptr) {
      params.lse[item.request * params.lse_request_stride + head * params.lse_head_stride] =
          sum == 0.0f ? kMinusInfinity : static_cast<float>(result.max[h] + std::log(double{sum}));
    }
  }
}

}  // namespace headrace::cpu
