// Partial results: the layout of one slot, and what becomes of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/decode_params.h"
#include "scheduler/work_item.h"

namespace headrace::cpu {

// What a work item of a plan covers: item.kv_head counts in units of num_kv_heads.
struct ItemShape {
  std::size_t num_kv_heads;
  std::size_t group;  // query heads per KV head
  std::size_t head_dim;

  constexpr std::size_t num_qo_heads() const { return num_kv_heads * group; }
  constexpr std::size_t partial_floats() const {
    return kernels::partial_floats(num_qo_heads(), head_dim);
  }
};

// One partial: the unnormalised result of one split.
struct Partial {
  float* out;  // [num_qo_heads, head_dim]: sum of p * v, without the V scale
  float* max;  // [num_qo_heads]: largest score, natural-log units; -inf if there are no tokens
  float* sum;  // [num_qo_heads]: sum of p = exp(score - max)
};

inline Partial partial_view(float* floats, const ItemShape& shape) {
  float* const max = floats + shape.num_qo_heads() * shape.head_dim;
  return {floats, max, max + shape.num_qo_heads()};
}

// The exponential weight of something whose largest score is `max` against `base`, the largest of
// all. Nothing at all (-inf) weighs 0, also against nothing.
float relative_weight(float max, float base);

// Adds up the partials of all splits of `item`'s request and KV heads in split order.
void merge_partials(const kernels::DecodeParams& params, const ItemShape& shape,
                    const scheduler::WorkItem& item, const Partial& merged);

// Normalises and writes out and lse of `item`'s request and KV heads.
void write_result(const kernels::DecodeParams& params, const ItemShape& shape,
                  const scheduler::WorkItem& item, const Partial& result);

}  // namespace headrace::cpu
