// One work item: attention of a group of query heads over a range of one request's tokens.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/partial.h"
#include "kernels/decode_params.h"
#include "scheduler/share.h"
#include "scheduler/work_item.h"

namespace headrace::cpu {

// Tokens are worked on in tiles: scores of a tile, its softmax, then its values.
inline constexpr std::size_t kTileTokens = 64;

// Query heads that share one pass over the keys or values of a tile: 1, 2 or 4.
inline constexpr std::size_t kMaxBlockHeads = 4;
inline constexpr std::size_t kMaxGroup = 64;

// The group in whole blocks: 4 + 4 + ... + 1, 2 or 4. Three heads are a block of 4 with one of
// zeros.
constexpr std::size_t padded_group(std::size_t group) { return group % 4 == 3 ? group + 1 : group; }

// Scratch memory of one worker.
struct Scratch {
  float* result;  // a Partial: of an item that is not split, or of a merge
  float* q;       // [padded group, head_dim], scaled, in the order of the widened cache elements
  float* acc;     // [padded group, head_dim], in the same order
  float* scores;  // [blocks][kTileTokens][heads of the block], then their exponentials
  float* wide;    // [kTileTokens, head_dim]: keys or values of a tile, widened; large groups only
};

// Where they lie, as offsets in floats. Multiples of 64 bytes.
struct ScratchLayout {
  std::size_t q, acc, scores, wide, total;

  constexpr ScratchLayout(std::size_t group, std::size_t head_dim) {
    const auto lines = [](std::size_t floats) { return (floats + 15) / 16 * 16; };
    const std::size_t heads = padded_group(group);
    q = lines(kernels::partial_floats(group, head_dim));
    acc = q + lines(heads * head_dim);
    scores = acc + lines(heads * head_dim);
    wide = scores + lines(heads * kTileTokens);
    total = wide + (group > kMaxBlockHeads ? lines(kTileTokens * head_dim) : 0);
  }

  Scratch view(void* memory) const {
    auto* const floats = static_cast<float*>(memory);
    return {floats, floats + q, floats + acc, floats + scores, floats + wide};
  }
};

// Computes the partial result of `item` over `tokens` with the best instruction set of this
// machine.
void attend(const kernels::DecodeParams& params, const scheduler::WorkItem& item,
            const scheduler::TokenRange& tokens, const Scratch& scratch, const Partial& result);

// Name of that instruction set.
const char* attend_target();

}  // namespace headrace::cpu
