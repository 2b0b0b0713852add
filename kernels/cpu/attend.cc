// Instruction sets left out. SSE4 has no fp16 conversions, and its machines are gone; the baseline
// serves them. AVX-512 has 16 lanes, of which a head dim of 80 fills no whole number of pairs,
// while 8 lanes keep up with the memory. Vectors of a size unknown at compile time (SVE, RVV)
// cannot lie in arrays.
#define HWY_DISABLED_TARGETS                                                          \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | \
   HWY_SVE2_128 | HWY_RVV)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attend.cc"
#include "kernels/cpu/attend.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "hwy/foreach_target.h"  // includes this file once per instruction set
#include "hwy/highway.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/tile-inl.h"
#include "kernels/cpu/widen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::cpu {
namespace HWY_NAMESPACE {

template <class Cache>
class Attention {
 public:
  using Element = typename Cache::Element;

  Attention(const kernels::DecodeParams& params, const scheduler::WorkItem& item,
            const Scratch& scratch)
      : params_(params),
        item_(item),
        scratch_(scratch),
        group_(static_cast<std::size_t>(params.num_qo_heads / params.num_kv_heads)),
        padded_group_(padded_group(group_)),
        head_dim_(static_cast<std::size_t>(params.head_dim)) {}

  void run(const scheduler::TokenRange& tokens, const Partial& result) {
    begin();
    Tile tiles[2];
    Tile* tile = &tiles[0];
    Tile* next = &tiles[1];
    find_rows(tokens.begin, tokens.end, *tile);
    for (std::int64_t position = tokens.begin; position < tokens.end; position += kTileTokens) {
      find_rows(position + kTileTokens, tokens.end, *next);
      add_tile(*tile, *next);
      std::swap(tile, next);
    }
    end(result);
  }

 private:
  struct Tile {
    Rows<Element> keys, values;
  };

  static constexpr Rows<float> kNoRows{{}, 0};

  std::size_t num_blocks() const { return (padded_group_ + kMaxBlockHeads - 1) / kMaxBlockHeads; }
  std::size_t block_heads(std::size_t block) const {
    return std::min(kMaxBlockHeads, padded_group_ - block * kMaxBlockHeads);
  }
  float* block_scores(std::size_t block) const {
    return scratch_.scores + block * kMaxBlockHeads * kTileTokens;
  }

  // Queries to float32, times everything that a score is multiplied by.
  void begin() {
    const double k_scale = params_.k_scale == nullptr ? 1.0 : params_.k_scale[item_.kv_head];
    const double factor = double{params_.sm_scale} * k_scale * Cache::kUnit;
    std::fill_n(scratch_.q, padded_group_ * head_dim_, 0.0f);
    std::fill_n(scratch_.acc, padded_group_ * head_dim_, 0.0f);
    float* const row = scratch_.result;  // not in use yet
    for (std::size_t h = 0; h < group_; ++h) {
      const auto head = static_cast<std::int64_t>(item_.kv_head * group_ + h);
      load_row(params_.q_dtype, params_.q,
               item_.request * params_.q_request_stride + head * params_.q_head_stride, head_dim_,
               row);
      float* const target = scratch_.q + h * head_dim_;
      for (std::size_t d = 0; d < head_dim_; ++d) {
        target[widened_index<Cache>(d)] = static_cast<float>(row[d] * factor);
      }
    }
    for (SoftmaxState& state : softmax_) {
      state = {};
      std::fill_n(state.max, kMaxBlockHeads, -std::numeric_limits<float>::infinity());
    }
  }

  // Rows of the tile that begins at `position`; none at or past `end`.
  void find_rows(std::int64_t position, std::int64_t end, Tile& tile) const {
    const auto count = static_cast<std::size_t>(
        std::clamp<std::int64_t>(end - position, 0, std::int64_t{kTileTokens}));
    tile.keys.count = tile.values.count = count;
    const std::int32_t* table = params_.block_table + item_.request * params_.block_table_stride;
    const auto* keys =
        static_cast<const Element*>(params_.k.data) + item_.kv_head * params_.k.head_stride;
    const auto* values =
        static_cast<const Element*>(params_.v.data) + item_.kv_head * params_.v.head_stride;
    std::int64_t page = position / params_.page_size;
    std::int64_t slot = position % params_.page_size;
    for (std::size_t t = 0; t < count; ++page, slot = 0) {
      const std::int64_t page_id = table[page];
      for (; slot < params_.page_size && t < count; ++slot, ++t) {
        tile.keys.row[t] = keys + page_id * params_.k.page_stride + slot * params_.k.token_stride;
        tile.values.row[t] =
            values + page_id * params_.v.page_stride + slot * params_.v.token_stride;
      }
    }
  }

  // Up to kMaxBlockHeads heads widen in registers; more heads share one widened copy.
  void add_tile(const Tile& tile, const Tile& next) {
    if (group_ <= kMaxBlockHeads) {
      score_block<Cache>(0, tile.keys, next.keys);
      finish_scores(0, tile.keys);
      add_block_values<Cache>(0, tile.values, next.values);
    } else {
      Rows<float> wide;
      widen_tile<Cache>(tile.keys, head_dim_, next.keys, scratch_.wide, wide);
      for (std::size_t block = 0; block < num_blocks(); ++block) {
        score_block<Float32>(block, wide, kNoRows);
        finish_scores(block, tile.keys);
      }
      widen_tile<Cache>(tile.values, head_dim_, next.values, scratch_.wide, wide);
      for (std::size_t block = 0; block < num_blocks(); ++block) {
        add_block_values<Float32>(block, wide, kNoRows);
      }
    }
    spread_value_nans(tile.values);
  }

  template <class Stored>
  void score_block(std::size_t block, const Rows<typename Stored::Element>& keys,
                   const Rows<typename Stored::Element>& next) const {
    const float* const q = scratch_.q + block * kMaxBlockHeads * head_dim_;
    switch (block_heads(block)) {
      case 1:
        return score_tile<Stored, 1>(keys, q, head_dim_, next, block_scores(block));
      case 2:
        return score_tile<Stored, 2>(keys, q, head_dim_, next, block_scores(block));
      default:
        return score_tile<Stored, 4>(keys, q, head_dim_, next, block_scores(block));
    }
  }

  void finish_scores(std::size_t block, const Rows<Element>& keys) {
    spread_key_nans(block, keys);
    softmax_tile(block_scores(block), keys.count, block_heads(block), softmax_[block]);
  }

  template <class Stored>
  void add_block_values(std::size_t block, const Rows<typename Stored::Element>& values,
                        const Rows<typename Stored::Element>& next) const {
    const float* const p = block_scores(block);
    const float* const rescale = softmax_[block].rescale;
    float* const acc = scratch_.acc + block * kMaxBlockHeads * head_dim_;
    switch (block_heads(block)) {
      case 1:
        return add_values<Stored, 1, 4>(values, p, rescale, head_dim_, 0, next, acc);
      case 2:
        return add_values<Stored, 2, 2>(values, p, rescale, head_dim_, 0, next, acc);
      default:
        return add_values<Stored, 4, 1>(values, p, rescale, head_dim_, 0, next, acc);
    }
  }

  // A NaN among the elements of a key makes its scores NaN, for every head.
  void spread_key_nans(std::size_t block, const Rows<Element>& keys) const {
    if constexpr (std::is_same_v<Cache, Float8E4M3>) {
      if (HWY_LIKELY(!has_nan_code(keys.row, keys.count, head_dim_))) return;
      const std::size_t heads = block_heads(block);
      for (std::size_t t = 0; t < keys.count; ++t) {
        if (!has_nan_code(keys.row + t, 1, head_dim_)) continue;
        std::fill_n(block_scores(block) + t * heads, heads,
                    std::numeric_limits<float>::quiet_NaN());
      }
    }
  }

  // A NaN among the values makes its element of the result NaN, for every head.
  void spread_value_nans(const Rows<Element>& values) const {
    if constexpr (std::is_same_v<Cache, Float8E4M3>) {
      if (HWY_LIKELY(!has_nan_code(values.row, values.count, head_dim_))) return;
      for (std::size_t t = 0; t < values.count; ++t) {
        for (std::size_t d = 0; d < head_dim_; ++d) {
          if (!is_nan_code(values.row[t][d])) continue;
          for (std::size_t h = 0; h < group_; ++h) {
            scratch_.acc[h * head_dim_ + widened_index<Cache>(d)] =
                std::numeric_limits<float>::quiet_NaN();
          }
        }
      }
    }
  }

  void end(const Partial& result) const {
    for (std::size_t h = 0; h < group_; ++h) {
      const SoftmaxState& state = softmax_[h / kMaxBlockHeads];
      result.max[h] = state.max[h % kMaxBlockHeads];
      result.sum[h] = static_cast<float>(state.sum[h % kMaxBlockHeads]);
      for (std::size_t d = 0; d < head_dim_; ++d) {
        result.out[h * head_dim_ + d] =
            scratch_.acc[h * head_dim_ + widened_index<Cache>(d)] * Cache::kUnit;
      }
    }
  }

  const kernels::DecodeParams& params_;
  const scheduler::WorkItem& item_;
  const Scratch& scratch_;
  const std::size_t group_;
  const std::size_t padded_group_;
  const std::size_t head_dim_;
  SoftmaxState softmax_[kMaxGroup / kMaxBlockHeads];
};

void attend_tokens(const kernels::DecodeParams& params, const scheduler::WorkItem& item,
                   const scheduler::TokenRange& tokens, const Scratch& scratch,
                   const Partial& result) {
  switch (params.kv_dtype) {
    case kernels::DType::kBFloat16:
      return Attention<BFloat16>(params, item, scratch).run(tokens, result);
    case kernels::DType::kFloat16:
      return Attention<Float16>(params, item, scratch).run(tokens, result);
    case kernels::DType::kFloat32:
      return Attention<Float32>(params, item, scratch).run(tokens, result);
    case kernels::DType::kFloat8E4M3:
      return Attention<Float8E4M3>(params, item, scratch).run(tokens, result);
  }
}

const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace headrace::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::cpu {

HWY_EXPORT(attend_tokens);
HWY_EXPORT(target_name);

void attend(const kernels::DecodeParams& params, const scheduler::WorkItem& item,
            const scheduler::TokenRange& tokens, const Scratch& scratch, const Partial& result) {
  HWY_DYNAMIC_DISPATCH(attend_tokens)(params, item, tokens, scratch, result);
}

const char* attend_target() { return HWY_DYNAMIC_DISPATCH(target_name)(); }

}  // namespace headrace::cpu
#endif
