// One work item from queries to partial result. Included once per instruction set.
#if defined(HEADRACE_CPU_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_CPU_ATTENTION_INL_H_
#undef HEADRACE_CPU_ATTENTION_INL_H_
#else
#define HEADRACE_CPU_ATTENTION_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "hwy/highway.h"
#include "kernels/cpu/attend.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/tile-inl.h"
#include "kernels/cpu/widen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::cpu {
namespace HWY_NAMESPACE {

// Tiles of all heads of an item together are to stay within this, measured (bench/RESULTS.md): with
// small ones the tile in work and the next one fit the L1 cache; fp8 spends more instructions per
// byte, and gains more from fewer tiles.
template <class Element>
inline constexpr std::size_t kTileBytes = sizeof(Element) == 1 ? 128 * 1024 : 32 * 1024;
inline constexpr std::size_t kMinTileTokens = 8;

template <class Cache>
class Attention {
 public:
  using Element = typename Cache::Element;

  Attention(const kernels::DecodeParams& params, const ItemShape& shape,
            const scheduler::WorkItem& item, const Scratch& scratch)
      : params_(params),
        shape_(shape),
        item_(item),
        scratch_(scratch),
        padded_group_(padded_group(shape.group)),
        num_blocks_(num_blocks(shape.group)),
        stride_(row_floats(shape.head_dim)),
        first_kv_head_(static_cast<std::int64_t>(item.kv_head * shape.num_kv_heads)) {}

  void run(const scheduler::TokenRange& tokens, const Partial& result) {
    begin();
    const std::size_t token_bytes = 2 * shape_.num_kv_heads * shape_.head_dim * sizeof(Element);
    std::size_t tile_tokens = kMaxTileTokens;
    while (tile_tokens > kMinTileTokens && tile_tokens * token_bytes > kTileBytes<Element>)
      tile_tokens /= 2;
    Tile tiles[2];
    Tile* tile = &tiles[0];
    Tile* next = &tiles[1];
    std::int64_t position = tokens.begin;
    find_rows(position, std::min(position + std::int64_t(tile_tokens), tokens.end), *tile);
    while (tile->keys.count != 0) {
      position += static_cast<std::int64_t>(tile->keys.count);
      find_rows(position, std::min(position + std::int64_t(tile_tokens), tokens.end), *next);
      add_tile(*tile, *next);
      std::swap(tile, next);
    }
    end(result);
  }

 private:
  // Rows of the item's first head.
  struct Tile {
    Rows<Element> keys, values;
  };

  std::size_t block_heads(std::size_t block) const {
    return std::min(kMaxBlockHeads, padded_group_ - block * kMaxBlockHeads);
  }
  float* block_scores(std::size_t block) const {
    return scratch_.scores + block * kMaxBlockHeads * kMaxTileTokens;
  }
  // Offset of a block's first row in q and acc.
  std::size_t block_offset(std::size_t head, std::size_t block) const {
    return (head * padded_group_ + block * kMaxBlockHeads) * stride_;
  }
  SoftmaxState& softmax(std::size_t head, std::size_t block) const {
    return scratch_.softmax[head * num_blocks_ + block];
  }

  // Queries to float32, times everything that a score is multiplied by.
  void begin() const {
    const std::size_t num_rows = shape_.num_kv_heads * padded_group_;
    std::fill_n(scratch_.q, num_rows * stride_, 0.0f);
    std::fill_n(scratch_.acc, num_rows * stride_, 0.0f);
    float* const row = scratch_.result;  // not in use yet
    for (std::size_t head = 0; head < shape_.num_kv_heads; ++head) {
      const std::int64_t kv_head = first_kv_head_ + static_cast<std::int64_t>(head);
      const double k_scale = params_.k_scale == nullptr ? 1.0 : params_.k_scale[kv_head];
      const double factor = double{params_.sm_scale} * k_scale * Cache::kUnit;
      for (std::size_t h = 0; h < shape_.group; ++h) {
        const std::int64_t qo_head = kv_head * static_cast<std::int64_t>(shape_.group) + h;
        load_row(params_.q_dtype, params_.q,
                 item_.request * params_.q_request_stride + qo_head * params_.q_head_stride,
                 shape_.head_dim, row);
        float* const target = scratch_.q + (head * padded_group_ + h) * stride_;
        for (std::size_t d = 0; d < shape_.head_dim; ++d) {
          target[widened_index<Cache>(d)] = static_cast<float>(row[d] * factor);
        }
      }
      for (std::size_t block = 0; block < num_blocks_; ++block) {
        softmax(head, block) = {};
        std::fill_n(softmax(head, block).max, kMaxBlockHeads,
                    -std::numeric_limits<float>::infinity());
      }
    }
  }

  // Rows of the tokens from `begin` to `end`; none if `begin` is not before `end`.
  void find_rows(std::int64_t begin, std::int64_t end, Tile& tile) const {
    const auto count = static_cast<std::size_t>(std::max<std::int64_t>(end - begin, 0));
    tile.keys.count = tile.values.count = count;
    const std::int32_t* table = params_.block_table + item_.request * params_.block_table_stride;
    const auto* keys =
        static_cast<const Element*>(params_.k.data) + first_kv_head_ * params_.k.head_stride;
    const auto* values =
        static_cast<const Element*>(params_.v.data) + first_kv_head_ * params_.v.head_stride;
    std::int64_t page = begin / params_.page_size;
    std::int64_t slot = begin % params_.page_size;
    for (std::size_t t = 0; t < count; ++page, slot = 0) {
      const std::int64_t page_id = table[page];
      for (; slot < params_.page_size && t < count; ++slot, ++t) {
        tile.keys.row[t] = keys + page_id * params_.k.page_stride + slot * params_.k.token_stride;
        tile.values.row[t] =
            values + page_id * params_.v.page_stride + slot * params_.v.token_stride;
      }
    }
  }

  void add_tile(const Tile& tile, const Tile& next) const {
    // After the last tile there is nothing to ask for; what is here already costs little.
    const Tile& wanted = next.keys.count != 0 ? next : tile;
    Prefetcher<Element> ahead(wanted.keys, wanted.values, shape_.num_kv_heads,
                              params_.k.head_stride, params_.v.head_stride, shape_.head_dim);
    Rows<Element> keys, values;
    keys.count = values.count = tile.keys.count;
    for (std::size_t head = 0; head < shape_.num_kv_heads; ++head) {
      for (std::size_t t = 0; t < keys.count; ++t) {
        keys.row[t] = tile.keys.row[t] + static_cast<std::int64_t>(head) * params_.k.head_stride;
        values.row[t] =
            tile.values.row[t] + static_cast<std::int64_t>(head) * params_.v.head_stride;
      }
      add_head_tile(head, keys, values, ahead);
    }
    ahead.finish();
  }

  // Up to kMaxBlockHeads query heads widen in registers; more heads share one widened copy.
  void add_head_tile(std::size_t head, const Rows<Element>& keys, const Rows<Element>& values,
                     Prefetcher<Element>& ahead) const {
    if (shape_.group <= kMaxBlockHeads) {
      score_block<Cache>(head, 0, keys, ahead);
      finish_scores(head, 0, keys);
      add_block_values<Cache>(head, 0, values, ahead);
    } else {
      Rows<float> wide;
      NoPrefetcher none;
      widen_tile<Cache>(keys, shape_.head_dim, stride_, ahead, scratch_.wide, wide);
      for (std::size_t block = 0; block < num_blocks_; ++block) {
        score_block<Float32>(head, block, wide, none);
        finish_scores(head, block, keys);
      }
      widen_tile<Cache>(values, shape_.head_dim, stride_, ahead, scratch_.wide, wide);
      for (std::size_t block = 0; block < num_blocks_; ++block) {
        add_block_values<Float32>(head, block, wide, none);
      }
    }
    spread_value_nans(head, values);
  }

  // How many elements of a row of Stored there are: widened rows end with whole loads.
  template <class Stored>
  std::size_t num_elements() const {
    if (std::is_same_v<Stored, Cache>) return shape_.head_dim;
    return (shape_.head_dim + Cache::kElements - 1) / Cache::kElements * Cache::kElements;
  }

  template <class Stored, class Ahead>
  void score_block(std::size_t head, std::size_t block, const Rows<typename Stored::Element>& keys,
                   Ahead& ahead) const {
    const float* const q = scratch_.q + block_offset(head, block);
    float* const scores = block_scores(block);
    const std::size_t elements = num_elements<Stored>();
    switch (block_heads(block)) {
      case 1:
        return score_tile<Stored, 1>(keys, q, elements, stride_, ahead, scores);
      case 2:
        return score_tile<Stored, 2>(keys, q, elements, stride_, ahead, scores);
      default:
        return score_tile<Stored, 4>(keys, q, elements, stride_, ahead, scores);
    }
  }

  void finish_scores(std::size_t head, std::size_t block, const Rows<Element>& keys) const {
    spread_key_nans(block, keys);
    softmax_tile(block_scores(block), keys.count, block_heads(block), softmax(head, block));
  }

  template <class Stored, class Ahead>
  void add_block_values(std::size_t head, std::size_t block,
                        const Rows<typename Stored::Element>& values, Ahead& ahead) const {
    const float* const p = block_scores(block);
    const float* const rescale = softmax(head, block).rescale;
    float* const acc = scratch_.acc + block_offset(head, block);
    switch (block_heads(block)) {
      case 1:
        return add_head_values<Stored, 1>(values, p, rescale, ahead, acc);
      case 2:
        return add_head_values<Stored, 2>(values, p, rescale, ahead, acc);
      default:
        return add_head_values<Stored, 4>(values, p, rescale, ahead, acc);
    }
  }

  template <class Stored, std::size_t kHeads, class Ahead>
  void add_head_values(const Rows<typename Stored::Element>& values, const float* p,
                       const float* rescale, Ahead& ahead, float* acc) const {
    constexpr std::size_t kVectors = std::min(kAccumulators / kHeads, kAccumulatorsPerHead);
    constexpr std::size_t kLoads = kVectors * kLanes / Stored::kElements;
    add_values<Stored, kHeads, kLoads>(values, 0, p, rescale, num_elements<Stored>(), stride_,
                                       ahead, acc);
  }

  // A NaN among the elements of a key makes its scores NaN, for every query head.
  void spread_key_nans(std::size_t block, const Rows<Element>& keys) const {
    if constexpr (Cache::kHidesNans) {
      if (HWY_LIKELY(!has_nan_code(keys.row, keys.count, shape_.head_dim))) return;
      const std::size_t heads = block_heads(block);
      for (std::size_t t = 0; t < keys.count; ++t) {
        if (!has_nan_code(keys.row + t, 1, shape_.head_dim)) continue;
        std::fill_n(block_scores(block) + t * heads, heads,
                    std::numeric_limits<float>::quiet_NaN());
      }
    }
  }

  // A NaN among the values makes its element of the result NaN, for every query head.
  void spread_value_nans(std::size_t head, const Rows<Element>& values) const {
    if constexpr (Cache::kHidesNans) {
      if (HWY_LIKELY(!has_nan_code(values.row, values.count, shape_.head_dim))) return;
      for (std::size_t t = 0; t < values.count; ++t) {
        for (std::size_t d = 0; d < shape_.head_dim; ++d) {
          if (!is_nan_code(values.row[t][d])) continue;
          for (std::size_t h = 0; h < shape_.group; ++h) {
            scratch_.acc[block_offset(head, 0) + h * stride_ + widened_index<Cache>(d)] =
                std::numeric_limits<float>::quiet_NaN();
          }
        }
      }
    }
  }

  void end(const Partial& result) const {
    for (std::size_t row = 0; row < shape_.num_qo_heads(); ++row) {
      const std::size_t head = row / shape_.group;
      const std::size_t h = row % shape_.group;
      const SoftmaxState& state = softmax(head, h / kMaxBlockHeads);
      result.max[row] = state.max[h % kMaxBlockHeads];
      result.sum[row] = static_cast<float>(state.sum[h % kMaxBlockHeads]);
      const float* const acc = scratch_.acc + block_offset(head, 0) + h * stride_;
      for (std::size_t d = 0; d < shape_.head_dim; ++d) {
        result.out[row * shape_.head_dim + d] = acc[widened_index<Cache>(d)] * Cache::kUnit;
      }
    }
  }

  const kernels::DecodeParams& params_;
  const ItemShape& shape_;
  const scheduler::WorkItem& item_;
  const Scratch& scratch_;
  const std::size_t padded_group_;
  const std::size_t num_blocks_;
  const std::size_t stride_;  // of rows of q and acc
  const std::int64_t first_kv_head_;
};

}  // namespace HWY_NAMESPACE
}  // namespace headrace::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard
