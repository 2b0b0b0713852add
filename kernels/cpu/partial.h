// Partial results: the layout of one slot, and what becomes of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/decode_params.h"
#include "scheduler/work_item.h"

namespace headrace::cpu {

// One partial: the unnormalised result of one split, for all query heads of one KV head.
struct Partial {
  float* out;  // [group, head_dim]: sum of p * v, without the V scale
  float* max;  // [group]: largest score, natural-log units; -inf if there are no tokens
  float* sum;  // [group]: sum of p = exp(score - max)
};

inline Partial partial_view(float* floats, std::size_t group, std::size_t head_dim) {
  float* const max = floats + group * head_dim;
  return {floats, max, max + group};
}

// The exponential weight of something whose largest score is `max` against `base`, the largest of
// all. Nothing at all (-inf) weighs 0, also against nothing.
float relative_weight(float max, float base);

// Adds up the partials of all splits of `item`'s request and KV head in split order.
void merge_partials(const kernels::DecodeParams& params, const scheduler::WorkItem& item,
                    const Partial& merged);

// Normalises and writes out and lse of `item`'s request and KV head.
void write_result(const kernels::DecodeParams& params, const scheduler::WorkItem& item,
                  const Partial& result);

}  // namespace headrace::cpu
