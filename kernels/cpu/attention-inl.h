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

// Keys and values of a tile, all heads of an item together: what is asked for ahead is still in the
// L1 cache, or near it, when its turn comes. Measured (bench/RESULTS.md).
inline constexpr std::size_t kTileBytes = 32 * 1024;

template <class Cache>
class Attention {
 public:
  using Element = typename Cache::Element;
  static constexpr bool kHasPairs = requires { typename Cache::Pairs; };

  Attention(const kernels::DecodeParams& params, const ItemShape& shape,
            const scheduler::WorkItem& item, const Scratch& scratch)
      : params_(params),
        shape_(shape),
        item_(item),
        scratch_(scratch),
        padded_group_(padded_group(shape.group)),
        num_blocks_(num_blocks(shape.group)),
        columns_(num_columns(shape)),
        stride_(row_elements(shape.head_dim)),
        tile_tokens_(num_tile_tokens(shape)),
        multiplies_pairs_(kHasPairs && params.q_dtype == kernels::DType::kBFloat16 &&
                          can_multiply_pairs()),
        first_kv_head_(static_cast<std::int64_t>(item.kv_head * shape.num_kv_heads)) {}

  void run(const scheduler::TokenRange& tokens, const Partial& result) {
    begin();
    Tile tiles[2];
    Tile* tile = &tiles[0];
    Tile* next = &tiles[1];
    std::int64_t position = tokens.begin;
    find_rows(position, std::min(position + tile_tokens_, tokens.end), *tile);
    while (tile->keys.count != 0) {
      position += static_cast<std::int64_t>(tile->keys.count);
      find_rows(position, std::min(position + tile_tokens_, tokens.end), *next);
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

  static std::int64_t num_tile_tokens(const ItemShape& shape) {
    const std::size_t token_bytes = 2 * shape.num_kv_heads * shape.head_dim * sizeof(Element);
    std::size_t tokens = max_tile_tokens(num_columns(shape));
    while (tokens > kMinTileTokens && tokens * token_bytes > kTileBytes) tokens /= 2;
    return static_cast<std::int64_t>(tokens);
  }

  std::size_t block_heads(std::size_t block) const {
    return std::min(kMaxBlockHeads, padded_group_ - block * kMaxBlockHeads);
  }
  std::size_t block_column(std::size_t head, std::size_t block) const {
    return head * padded_group_ + block * kMaxBlockHeads;
  }

  void begin() const {
    const std::size_t num_rows = shape_.num_kv_heads * padded_group_;
    std::fill_n(scratch_.q, num_rows * stride_, 0.0f);
    std::fill_n(scratch_.acc, num_rows * stride_, 0.0f);
    std::fill_n(scratch_.scores, static_cast<std::size_t>(tile_tokens_) * columns_, 0.0f);
    const SoftmaxState& softmax = scratch_.softmax;
    std::fill_n(softmax.factor, columns_, 0.0f);
    std::fill_n(softmax.max, columns_, -std::numeric_limits<float>::infinity());
    std::fill_n(softmax.sum, columns_, 0.0);
    for (std::size_t head = 0; head < shape_.num_kv_heads; ++head) {
      const std::int64_t kv_head = first_kv_head_ + static_cast<std::int64_t>(head);
      const double k_scale = params_.k_scale == nullptr ? 1.0 : params_.k_scale[kv_head];
      std::fill_n(softmax.factor + block_column(head, 0), shape_.group,
                  static_cast<float>(double{params_.sm_scale} * k_scale * Cache::kUnit));
      for (std::size_t h = 0; h < shape_.group; ++h) {
        load_query(kv_head * static_cast<std::int64_t>(shape_.group) + h,
                   (block_column(head, 0) + h) * stride_);
      }
    }
  }

  // Brings a query head into the order of the loaded keys, at q[offset].
  void load_query(std::int64_t qo_head, std::size_t offset) const {
    float* const row = scratch_.result;  // not in use yet
    load_row(params_.q_dtype, params_.q,
             item_.request * params_.q_request_stride + qo_head * params_.q_head_stride,
             shape_.head_dim, row);
    if constexpr (kHasPairs) {
      if (multiplies_pairs_) {
        auto* const target = reinterpret_cast<std::uint16_t*>(scratch_.q) + offset;
        for (std::size_t d = 0; d < shape_.head_dim; ++d) {
          target[loaded_index<typename Cache::Pairs>(d)] = bf16_of_float(row[d]);
        }
        return;
      }
    }
    float* const target = scratch_.q + offset;
    for (std::size_t d = 0; d < shape_.head_dim; ++d) target[loaded_index<Cache>(d)] = row[d];
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
    for_each_head(tile.keys, params_.k,
                  [&](std::size_t head, std::size_t begin, const Rows<Element>& keys) {
                    score_head(head, begin, keys, ahead);
                  });
    softmax_tile(scratch_.scores, tile.keys.count, columns_, scratch_.softmax);
    for_each_head(tile.values, params_.v,
                  [&](std::size_t head, std::size_t begin, const Rows<Element>& values) {
                    add_head_values(head, begin, values, ahead);
                  });
    ahead.finish();
  }

  // Calls work(head, first token, rows) for all heads of a tile, chunk by chunk.
  template <class Work>
  void for_each_head(const Rows<Element>& first_head, const kernels::PagedPool& pool,
                     const Work& work) const {
    const bool adjacent = pool.head_stride == static_cast<std::int64_t>(shape_.head_dim);
    const std::size_t chunk = adjacent ? kChunkTokens<Element> : first_head.count;
    for (std::size_t begin = 0; begin < first_head.count; begin += chunk) {
      Rows<Element> rows;
      rows.count = std::min(chunk, first_head.count - begin);
      for (std::size_t head = 0; head < shape_.num_kv_heads; ++head) {
        for (std::size_t t = 0; t < rows.count; ++t) {
          rows.row[t] =
              first_head.row[begin + t] + static_cast<std::int64_t>(head) * pool.head_stride;
        }
        work(head, begin, rows);
      }
    }
  }

  void score_head(std::size_t head, std::size_t begin, const Rows<Element>& keys,
                  Prefetcher<Element>& ahead) const {
    if (multiplies_pairs_) {
      if constexpr (kHasPairs) score_keys<typename Cache::Pairs>(head, begin, keys, ahead);
    } else {
      score_keys<Cache>(head, begin, keys, ahead);
    }
    spread_key_nans(head, begin, keys);
  }

  // Up to kMaxBlockHeads query heads widen in registers; more heads share one widened copy.
  template <class Keys>
  void score_keys(std::size_t head, std::size_t begin, const Rows<Element>& keys,
                  Prefetcher<Element>& ahead) const {
    if (num_blocks_ == 1) return score_block<Keys>(head, 0, begin, keys, shape_.head_dim, ahead);
    const auto wide = widen<Keys>(keys, ahead);
    NoPrefetcher none;
    for (std::size_t block = 0; block < num_blocks_; ++block) {
      score_block<typename Keys::Wide>(head, block, begin, wide, widened_elements<Keys>(), none);
    }
  }

  void add_head_values(std::size_t head, std::size_t begin, const Rows<Element>& values,
                       Prefetcher<Element>& ahead) const {
    if (num_blocks_ == 1) {
      add_block_values<Cache>(head, 0, begin, values, shape_.head_dim, ahead);
    } else {
      const auto wide = widen<Cache>(values, ahead);
      NoPrefetcher none;
      for (std::size_t block = 0; block < num_blocks_; ++block) {
        add_block_values<Float32>(head, block, begin, wide, widened_elements<Cache>(), none);
      }
    }
    spread_value_nans(head, values);
  }

  template <class Stored>
  Rows<typename Stored::Wide::Element> widen(const Rows<Element>& rows,
                                             Prefetcher<Element>& ahead) const {
    using Wide = typename Stored::Wide::Element;
    Rows<Wide> wide;
    widen_rows<Stored>(rows, shape_.head_dim, stride_, ahead,
                       reinterpret_cast<Wide*>(scratch_.wide), wide);
    return wide;
  }

  // How many elements a widened row has: it ends with a whole load.
  template <class Stored>
  std::size_t widened_elements() const {
    return (shape_.head_dim + Stored::kElements - 1) / Stored::kElements * Stored::kElements;
  }

  template <class Stored, class Ahead>
  void score_block(std::size_t head, std::size_t block, std::size_t begin,
                   const Rows<typename Stored::Element>& keys, std::size_t elements,
                   Ahead& ahead) const {
    using Query = typename Stored::Wide::Element;
    const std::size_t column = block_column(head, block);
    const Query* const q = reinterpret_cast<const Query*>(scratch_.q) + column * stride_;
    float* const scores = scratch_.scores + begin * columns_ + column;
    switch (block_heads(block)) {
      case 1:
        return score_tile<Stored, 1>(keys, q, elements, stride_, ahead, columns_, scores);
      case 2:
        return score_tile<Stored, 2>(keys, q, elements, stride_, ahead, columns_, scores);
      default:
        return score_tile<Stored, 4>(keys, q, elements, stride_, ahead, columns_, scores);
    }
  }

  template <class Stored, class Ahead>
  void add_block_values(std::size_t head, std::size_t block, std::size_t begin,
                        const Rows<typename Stored::Element>& values, std::size_t elements,
                        Ahead& ahead) const {
    const std::size_t column = block_column(head, block);
    switch (block_heads(block)) {
      case 1:
        return add_values_of<Stored, 1>(column, begin, values, elements, ahead);
      case 2:
        return add_values_of<Stored, 2>(column, begin, values, elements, ahead);
      default:
        return add_values_of<Stored, 4>(column, begin, values, elements, ahead);
    }
  }

  template <class Stored, std::size_t kHeads, class Ahead>
  void add_values_of(std::size_t column, std::size_t begin,
                     const Rows<typename Stored::Element>& values, std::size_t elements,
                     Ahead& ahead) const {
    // The first chunk of a tile brings earlier results to the new max.
    static constexpr float kOnes[kMaxBlockHeads] = {1.0f, 1.0f, 1.0f, 1.0f};
    const float* const rescale = begin == 0 ? scratch_.softmax.rescale + column : kOnes;
    constexpr std::size_t kVectors = std::min(kAccumulators / kHeads, kAccumulatorsPerHead);
    constexpr std::size_t kLoads = kVectors * kLanes / Stored::kElements;
    add_values<Stored, kHeads, kLoads>(values, 0, scratch_.scores + begin * columns_ + column,
                                       columns_, rescale, elements, stride_, ahead,
                                       scratch_.acc + column * stride_);
  }

  // A NaN among the elements of a key makes its scores NaN, for every query head.
  void spread_key_nans(std::size_t head, std::size_t begin, const Rows<Element>& keys) const {
    if constexpr (Cache::kHidesNans) {
      if (HWY_LIKELY(!has_nan_code(keys.row, keys.count, shape_.head_dim))) return;
      for (std::size_t t = 0; t < keys.count; ++t) {
        if (!has_nan_code(keys.row + t, 1, shape_.head_dim)) continue;
        std::fill_n(scratch_.scores + (begin + t) * columns_ + block_column(head, 0), shape_.group,
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
            scratch_.acc[(block_column(head, 0) + h) * stride_ + loaded_index<Cache>(d)] =
                std::numeric_limits<float>::quiet_NaN();
          }
        }
      }
    }
  }

  void end(const Partial& result) const {
    for (std::size_t row = 0; row < shape_.num_qo_heads(); ++row) {
      const std::size_t column = block_column(row / shape_.group, 0) + row % shape_.group;
      result.max[row] = scratch_.softmax.max[column];
      result.sum[row] = static_cast<float>(scratch_.softmax.sum[column]);
      const float* const acc = scratch_.acc + column * stride_;
      for (std::size_t d = 0; d < shape_.head_dim; ++d) {
        result.out[row * shape_.head_dim + d] = acc[loaded_index<Cache>(d)] * Cache::kUnit;
      }
    }
  }

  const kernels::DecodeParams& params_;
  const ItemShape& shape_;
  const scheduler::WorkItem& item_;
  const Scratch& scratch_;
  const std::size_t padded_group_;
  const std::size_t num_blocks_;
  const std::size_t columns_;
  const std::size_t stride_;  // of rows of q and acc
  const std::int64_t tile_tokens_;
  const bool multiplies_pairs_;
  const std::int64_t first_kv_head_;
};

}  // namespace HWY_NAMESPACE
}  // namespace headrace::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard
