// One work item: attention over a range of one request's tokens.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/partial.h"
#include "kernels/decode_params.h"
#include "scheduler/share.h"
#include "scheduler/work_item.h"

namespace headrace::cpu {

// Most tokens of a tile. Scores of a tile, its softmax and its values are worked on in turn.
inline constexpr std::size_t kMaxTileTokens = 64;

// Query heads that share one pass over the keys or values of a tile: 1, 2 or 4.
inline constexpr std::size_t kMaxBlockHeads = 4;

// Every head dim is a multiple of this.
inline constexpr std::size_t kHeadDimUnit = 16;

// Floats of a row of queries or results: the head dim in whole loads of any instruction set.
constexpr std::size_t row_floats(std::size_t head_dim) { return (head_dim + 63) / 64 * 64; }

// The group in whole blocks: 4 + 4 + ... + 1, 2 or 4. Three heads are a block of 4 with one of
// zeros.
constexpr std::size_t padded_group(std::size_t group) { return group % 4 == 3 ? group + 1 : group; }

constexpr std::size_t num_blocks(std::size_t group) {
  return (group + kMaxBlockHeads - 1) / kMaxBlockHeads;
}

// Running softmax of a block's heads.
struct SoftmaxState {
  float max[kMaxBlockHeads];
  float rescale[kMaxBlockHeads];  // what earlier tiles' results are worth against the new max
  double sum[kMaxBlockHeads];
};

// Scratch memory of one worker.
struct Scratch {
  float* result;          // a Partial: of an item that is not split, or of a merge
  float* q;               // [num_kv_heads, padded group, row_floats], scaled, in the order of the
                          // widened cache elements
  float* acc;             // [num_kv_heads, padded group, row_floats], in the same order
  SoftmaxState* softmax;  // [num_kv_heads, blocks]
  float* scores;          // [blocks, tile tokens, heads of the block] of one KV head, then their
                          // exponentials
  float* wide;            // [tile tokens, row_floats]: keys or values, widened; large groups only
};

// Where they lie: byte offsets, multiples of 64.
struct ScratchLayout {
  std::size_t q, acc, softmax, scores, wide, total;

  explicit constexpr ScratchLayout(const ItemShape& shape) {
    const auto lines = [](std::size_t bytes) { return (bytes + 63) / 64 * 64; };
    const std::size_t heads = padded_group(shape.group);
    const std::size_t rows_bytes =
        lines(shape.num_kv_heads * heads * row_floats(shape.head_dim) * sizeof(float));
    q = lines(shape.partial_floats() * sizeof(float));
    acc = q + rows_bytes;
    softmax = acc + rows_bytes;
    scores = softmax + lines(shape.num_kv_heads * num_blocks(shape.group) * sizeof(SoftmaxState));
    wide = scores + lines(heads * kMaxTileTokens * sizeof(float));
    total = wide;
    if (shape.group > kMaxBlockHeads) {
      total += lines(kMaxTileTokens * row_floats(shape.head_dim) * sizeof(float));
    }
  }

  Scratch view(void* memory) const {
    auto* const bytes = static_cast<std::byte*>(memory);
    const auto floats = [bytes](std::size_t offset) {
      return reinterpret_cast<float*>(bytes + offset);
    };
    return {floats(0),      floats(q),
            floats(acc),    reinterpret_cast<SoftmaxState*>(bytes + softmax),
            floats(scores), floats(wide)};
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
