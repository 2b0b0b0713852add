// One work item: attention over a range of one request's tokens.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/partial.h"
#include "kernels/decode_params.h"
#include "scheduler/share.h"
#include "scheduler/work_item.h"

namespace headrace::cpu {

// Tokens of a tile. Scores of a tile, its softmax and its values are worked on in turn.
inline constexpr std::size_t kMaxTileTokens = 64;
inline constexpr std::size_t kMinTileTokens = 8;

// Query heads that share one pass over the keys or values of a tile: 1, 2 or 4.
inline constexpr std::size_t kMaxBlockHeads = 4;

// Every head dim is a multiple of this.
inline constexpr std::size_t kHeadDimUnit = 16;

// Elements of a row of queries or results: the head dim in whole loads of any instruction set.
constexpr std::size_t row_elements(std::size_t head_dim) { return (head_dim + 63) / 64 * 64; }

// The group in whole blocks: 4 + 4 + ... + 1, 2 or 4. Three heads are a block of 4 with one of
// zeros.
constexpr std::size_t padded_group(std::size_t group) { return group % 4 == 3 ? group + 1 : group; }

constexpr std::size_t num_blocks(std::size_t group) {
  return (group + kMaxBlockHeads - 1) / kMaxBlockHeads;
}

// What a tile's scores and the running softmax hold: one column per query head of the item, padding
// included, in whole vectors of any instruction set.
constexpr std::size_t num_columns(const ItemShape& shape) {
  return (shape.num_kv_heads * padded_group(shape.group) + 15) / 16 * 16;
}

// Most tokens of a tile of so many columns: its scores stay in the L1 cache.
constexpr std::size_t max_tile_tokens(std::size_t columns) {
  std::size_t tokens = kMaxTileTokens;
  while (tokens > kMinTileTokens && tokens * columns > 4096) tokens /= 2;
  return tokens;
}

// Running softmax: an entry per column.
struct SoftmaxState {
  float* factor;   // what scores are multiplied by
  float* max;      // largest score so far
  float* rescale;  // what earlier tiles' results are worth against the new max
  float* tile_sum;
  double* sum;
};

// Scratch memory of one worker.
struct Scratch {
  float* result;         // a Partial: of an item that is not split, or of a merge
  float* q;              // [num_kv_heads, padded group, row_elements], in the order of the loaded
                         // cache elements; or as many bf16 values
  float* acc;            // [num_kv_heads, padded group, row_elements], in the order of the widened
                         // cache elements
  SoftmaxState softmax;  // [columns]
  float* scores;         // [tile tokens, columns], then their exponentials
  float* wide;           // [tile tokens, row_elements]: keys or values, widened; large groups only
};

// Where they lie: byte offsets, multiples of 64.
struct ScratchLayout {
  std::size_t columns, q, acc, softmax, scores, wide, total;

  explicit constexpr ScratchLayout(const ItemShape& shape) : columns(num_columns(shape)) {
    const auto lines = [](std::size_t bytes) { return (bytes + 63) / 64 * 64; };
    const std::size_t tokens = max_tile_tokens(columns);
    const std::size_t row_bytes = row_elements(shape.head_dim) * sizeof(float);
    const std::size_t rows_bytes = shape.num_kv_heads * padded_group(shape.group) * row_bytes;
    q = lines(shape.partial_floats() * sizeof(float));
    acc = q + rows_bytes;
    softmax = acc + rows_bytes;
    scores = softmax + columns * (4 * sizeof(float) + sizeof(double));
    wide = scores + tokens * columns * sizeof(float);
    total = wide + (shape.group > kMaxBlockHeads ? tokens * row_bytes : 0);
  }

  Scratch view(void* memory) const {
    auto* const bytes = static_cast<std::byte*>(memory);
    const auto floats = [bytes](std::size_t offset) {
      return reinterpret_cast<float*>(bytes + offset);
    };
    float* const state = floats(softmax);
    return {.result = floats(0),
            .q = floats(q),
            .acc = floats(acc),
            .softmax = {.factor = state,
                        .max = state + columns,
                        .rescale = state + 2 * columns,
                        .tile_sum = state + 3 * columns,
                        .sum = reinterpret_cast<double*>(state + 4 * columns)},
            .scores = floats(scores),
            .wide = floats(wide)};
  }
};

// Computes the partial result of `item` over `tokens` with the best instruction set of this
// machine.
void attend(const kernels::DecodeParams& params, const ItemShape& shape,
            const scheduler::WorkItem& item, const scheduler::TokenRange& tokens,
            const Scratch& scratch, const Partial& result);

// Name of that instruction set.
const char* attend_target();

}  // namespace headrace::cpu
