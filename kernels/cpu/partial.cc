#include "kernels/cpu/partial.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/convert.h"

namespace headrace::cpu {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

}  // namespace

float relative_weight(float max, float base) {
  if (max == base && std::isfinite(max)) return 1.0f;
  if (max == kMinusInfinity) return 0.0f;
  return static_cast<float>(std::exp(static_cast<double>(max) - static_cast<double>(base)));
}

void merge_partials(const kernels::DecodeParams& params, const ItemShape& shape,
                    const scheduler::WorkItem& item, const Partial& merged) {
  const std::size_t num_heads = shape.num_qo_heads();
  const auto split = [&](std::size_t index) {
    return partial_view(params.partials + (item.first_slot + index) * shape.partial_floats(),
                        shape);
  };

  std::fill_n(merged.max, num_heads, kMinusInfinity);
  for (std::size_t s = 0; s < item.split_count; ++s) {
    for (std::size_t h = 0; h < num_heads; ++h) {
      merged.max[h] = std::max(merged.max[h], split(s).max[h]);
    }
  }

  std::fill_n(merged.out, num_heads * shape.head_dim, 0.0f);
  std::fill_n(merged.sum, num_heads, 0.0f);
  for (std::size_t s = 0; s < item.split_count; ++s) {
    const Partial partial = split(s);
    for (std::size_t h = 0; h < num_heads; ++h) {
      const float weight = relative_weight(partial.max[h], merged.max[h]);
      merged.sum[h] += weight * partial.sum[h];
      for (std::size_t d = h * shape.head_dim; d < (h + 1) * shape.head_dim; ++d) {
        merged.out[d] += weight * partial.out[d];
      }
    }
  }
}

void write_result(const kernels::DecodeParams& params, const ItemShape& shape,
                  const scheduler::WorkItem& item, const Partial& result) {
  for (std::size_t h = 0; h < shape.num_qo_heads(); ++h) {
    const std::size_t kv_head = item.kv_head * shape.num_kv_heads + h / shape.group;
    const auto head = static_cast<std::int64_t>(item.kv_head * shape.num_qo_heads() + h);
    const double v_scale = params.v_scale == nullptr ? 1.0 : params.v_scale[kv_head];
    float* const row = result.out + h * shape.head_dim;
    const float sum = result.sum[h];
    // Without tokens the sum is 0 and so is the row; dividing would make it NaN.
    const double scale = sum == 0.0f ? 0.0 : v_scale / sum;
    for (std::size_t d = 0; d < shape.head_dim; ++d) row[d] = static_cast<float>(row[d] * scale);
    store_row(params.out_dtype, row, shape.head_dim, params.out,
              item.request * params.out_request_stride + head * params.out_head_stride);
    if (params.lse != nullptr) {
      params.lse[item.request * params.lse_request_stride + head * params.lse_head_stride] =
          sum == 0.0f ? kMinusInfinity : static_cast<float>(result.max[h] + std::log(double{sum}));
    }
  }
}

}  // namespace headrace::cpu
