// The three steps of a tile of tokens for a block of 1, 2 or 4 query heads: scores, softmax,
// values. Included once per instruction set.
#if defined(HEADRACE_CPU_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_CPU_TILE_INL_H_
#undef HEADRACE_CPU_TILE_INL_H_
#else
#define HEADRACE_CPU_TILE_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "hwy/cache_control.h"
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "kernels/cpu/attend.h"
#include "kernels/cpu/widen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::cpu {
namespace HWY_NAMESPACE {

// Two fused multiply-adds per cycle with a latency of 4: eight accumulators keep both units busy,
// and leave registers for the widened elements.
inline constexpr std::size_t kAccumulators = 8;

inline constexpr std::size_t kCacheLineBytes = 64;

// Rows of keys or values of one KV head, one per token of a tile.
template <class Element>
struct Rows {
  const Element* row[kMaxTileTokens];
  std::size_t count;
};

// Asks for the keys and values of the next tile, in the order of memory: that is what hardware
// prefetchers join in on, while a walk over one head's rows in an NHD pool reads at less than half
// the rate. Two streams at once, of keys and of values, read faster than one. The steps are spread
// evenly over the arithmetic: a core has some 20 misses under way at most, so memory rests while
// none are added, and the arithmetic waits while they are full.
template <class Element>
class Prefetcher {
 public:
  // `keys` and `values` are those of the first head and must outlive this.
  Prefetcher(const Rows<Element>& keys, const Rows<Element>& values, std::size_t num_heads,
             std::int64_t key_head_stride, std::int64_t value_head_stride, bool heads_innermost,
             std::size_t head_dim)
      : keys_(keys),
        values_(values),
        num_heads_(num_heads),
        key_head_stride_(key_head_stride),
        value_head_stride_(value_head_stride),
        heads_innermost_(heads_innermost),
        row_bytes_(head_dim * sizeof(Element)) {
    begin_row();
  }

  // To be called in a loop whose iterations read kBytes of the present tile each.
  template <std::size_t kBytes>
  HWY_INLINE void advance(std::size_t iteration) {
    if constexpr (kBytes >= kStepBytes) {
      for (std::size_t i = 0; i < kBytes / kStepBytes; ++i) step();
    } else {
      if (iteration % (kStepBytes / kBytes) == 0) step();
    }
  }

  // Asks for what is left.
  void finish() {
    while (token_ < keys_.count) step();
  }

 private:
  // A line of keys and one of values.
  static constexpr std::size_t kStepBytes = 2 * kCacheLineBytes;

  HWY_INLINE void step() {
    if (token_ == keys_.count) return;
    hwy::Prefetch(key_ + offset_);
    hwy::Prefetch(value_ + offset_);
    offset_ += kCacheLineBytes;
    if (offset_ >= row_bytes_) next_row();
  }

  HWY_INLINE void next_row() {
    if (heads_innermost_) {
      if (++head_ == num_heads_) head_ = 0, ++token_;
    } else {
      if (++token_ == keys_.count && ++head_ < num_heads_) token_ = 0;
    }
    begin_row();
  }

  HWY_INLINE void begin_row() {
    if (token_ == keys_.count) return;
    const auto head = static_cast<std::int64_t>(head_);
    key_ = reinterpret_cast<const char*>(keys_.row[token_] + head * key_head_stride_);
    value_ = reinterpret_cast<const char*>(values_.row[token_] + head * value_head_stride_);
    offset_ = 0;
  }

  const Rows<Element>& keys_;
  const Rows<Element>& values_;
  const std::size_t num_heads_;
  const std::int64_t key_head_stride_;
  const std::int64_t value_head_stride_;
  const bool heads_innermost_;
  const std::size_t row_bytes_;
  std::size_t head_ = 0;
  std::size_t token_ = 0;
  const char* key_ = nullptr;
  const char* value_ = nullptr;
  std::size_t offset_ = 0;
};

// For tiles that are widened already.
struct NoPrefetcher {
  template <std::size_t kBytes>
  HWY_INLINE void advance(std::size_t) {}
};

// The sums over lanes of four vectors. D is the type of their lanes, Floats.
template <class D>
HWY_INLINE void store_four_sums(D d, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> c, hn::Vec<D> e,
                                float* HWY_RESTRICT sums) {
#if HWY_TARGET == HWY_SCALAR
  const Vec vectors[] = {a, b, c, e};
  for (std::size_t i = 0; i < 4; ++i) hn::StoreU(vectors[i], d, sums + i);
#else
  // Each step adds halves of two vectors and interleaves the sums, within blocks of four lanes.
  const auto ac = hn::Add(hn::InterleaveLower(d, a, c), hn::InterleaveUpper(d, a, c));
  const auto be = hn::Add(hn::InterleaveLower(d, b, e), hn::InterleaveUpper(d, b, e));
  const auto abce = hn::Add(hn::InterleaveLower(d, ac, be), hn::InterleaveUpper(d, ac, be));
  if constexpr (hn::MaxLanes(D()) == 4) {
    hn::StoreU(abce, d, sums);
  } else {
    static_assert(hn::MaxLanes(D()) == 8);
    const hn::Half<D> d4;
    hn::StoreU(hn::Add(hn::LowerHalf(d4, abce), hn::UpperHalf(d4, abce)), d4, sums);
  }
#endif
}

// scores[t][h] = q[h] . k[t] for all tokens of the tile, q [kHeads, head_dim]. May write up to
// kAccumulators / kHeads - 1 tokens past the last one.
template <class Cache, std::size_t kHeads, class Ahead>
HWY_INLINE void score_tile(const Rows<typename Cache::Element>& keys, const float* HWY_RESTRICT q,
                           std::size_t head_dim, Ahead& ahead, float* HWY_RESTRICT scores) {
  constexpr std::size_t kTokens = kAccumulators / kHeads;
  constexpr std::size_t kBytes = kTokens * kPairLanes * sizeof(typename Cache::Element);
  const Floats d;
  for (std::size_t begin = 0; begin < keys.count; begin += kTokens) {
    const typename Cache::Element* row[kTokens];
    for (std::size_t t = 0; t < kTokens; ++t) {
      row[t] = keys.row[std::min(begin + t, keys.count - 1)];
    }
    Vec sum[kAccumulators];
    for (Vec& s : sum) s = hn::Zero(d);
    for (std::size_t i = 0; i < head_dim; i += kPairLanes) {
      ahead.template advance<kBytes>(i / kPairLanes);
      Vec q_first[kHeads], q_second[kHeads];
      for (std::size_t h = 0; h < kHeads; ++h) {
        q_first[h] = hn::LoadU(d, q + h * head_dim + i);
        q_second[h] = hn::LoadU(d, q + h * head_dim + i + kLanes);
      }
      for (std::size_t t = 0; t < kTokens; ++t) {
        const VecPair k = Cache::load(row[t] + i);
        for (std::size_t h = 0; h < kHeads; ++h) {
          Vec& s = sum[t * kHeads + h];
          s = hn::MulAdd(q_second[h], k.second, hn::MulAdd(q_first[h], k.first, s));
        }
      }
    }
    for (std::size_t i = 0; i < kAccumulators; i += 4) {
      store_four_sums(d, sum[i], sum[i + 1], sum[i + 2], sum[i + 3], scores + begin * kHeads + i);
    }
  }
}

// Turns scores [num_tokens][num_heads] into exp(score - max) and brings the state up to date. Fills
// the buffer up to a whole number of steps.
inline void softmax_tile(float* HWY_RESTRICT scores, std::size_t num_tokens, std::size_t num_heads,
                         SoftmaxState& state) {
  const Floats d;
  // Elements per step: whole vectors, and a multiple of every block size, so that element i of a
  // step always belongs to head i % num_heads.
  constexpr std::size_t kStep = std::max(kLanes, kMaxBlockHeads);
  constexpr std::size_t kVectors = kStep / kLanes;
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

  const std::size_t count = num_tokens * num_heads;
  const std::size_t padded = (count + kStep - 1) / kStep * kStep;
  std::fill(scores + count, scores + padded, kMinusInfinity);

  Vec largest[kVectors];
  for (Vec& v : largest) v = hn::Set(d, kMinusInfinity);
  for (std::size_t i = 0; i < padded; i += kStep) {
    for (std::size_t j = 0; j < kVectors; ++j) {
      largest[j] = hn::Max(largest[j], hn::LoadU(d, scores + i + j * kLanes));
    }
  }
  float lane[kStep];
  for (std::size_t j = 0; j < kVectors; ++j) hn::StoreU(largest[j], d, lane + j * kLanes);
  for (std::size_t h = 0; h < num_heads; ++h) {
    float max = state.max[h];
    for (std::size_t i = h; i < kStep; i += num_heads) max = lane[i] > max ? lane[i] : max;
    state.rescale[h] = relative_weight(state.max[h], max);
    state.max[h] = max;
    // Scores that are all -inf have no finite maximum to subtract: -inf - -inf would be NaN.
    const float base = max == kMinusInfinity ? 0.0f : max;
    for (std::size_t i = h; i < kStep; i += num_heads) lane[i] = base;
  }

  Vec base[kVectors], sum[kVectors];
  for (std::size_t j = 0; j < kVectors; ++j) {
    base[j] = hn::LoadU(d, lane + j * kLanes);
    sum[j] = hn::Zero(d);
  }
  for (std::size_t i = 0; i < padded; i += kStep) {
    for (std::size_t j = 0; j < kVectors; ++j) {
      const Vec exponent = hn::Sub(hn::LoadU(d, scores + i + j * kLanes), base[j]);
      // Exp() makes 0 of a NaN, which has to show in the result.
      const Vec p = hn::IfThenElse(hn::IsNaN(exponent), exponent, hn::Exp(d, exponent));
      hn::StoreU(p, d, scores + i + j * kLanes);
      sum[j] = hn::Add(sum[j], p);
    }
  }
  for (std::size_t j = 0; j < kVectors; ++j) hn::StoreU(sum[j], d, lane + j * kLanes);
  for (std::size_t h = 0; h < num_heads; ++h) {
    double tile_sum = 0.0;
    for (std::size_t i = h; i < kStep; i += num_heads) tile_sum += lane[i];
    state.sum[h] = state.sum[h] * state.rescale[h] + tile_sum;
  }
}

// acc[h] = acc[h] * rescale[h] + sum over t of p[t][h] * v[t], for the elements from `begin` on
// that fill kPairs pairs of vectors per head, then for the rest with fewer pairs. Sums over a tile
// begin at 0, which keeps rounding errors small in long requests.
template <class Cache, std::size_t kHeads, std::size_t kPairs, class Ahead>
HWY_INLINE void add_values(const Rows<typename Cache::Element>& values, const float* HWY_RESTRICT p,
                           const float* rescale, std::size_t head_dim, std::size_t begin,
                           Ahead& ahead, float* HWY_RESTRICT acc) {
  const Floats d;
  constexpr std::size_t kElements = kPairs * kPairLanes;
  for (; begin + kElements <= head_dim; begin += kElements) {
    Vec sum[kHeads][2 * kPairs];
    for (auto& head : sum) {
      for (Vec& s : head) s = hn::Zero(d);
    }
    for (std::size_t t = 0; t < values.count; ++t) {
      ahead.template advance<kElements * sizeof(typename Cache::Element)>(t);
      VecPair v[kPairs];
      for (std::size_t i = 0; i < kPairs; ++i) {
        v[i] = Cache::load(values.row[t] + begin + i * kPairLanes);
      }
      for (std::size_t h = 0; h < kHeads; ++h) {
        const Vec weight = hn::Set(d, p[t * kHeads + h]);
        for (std::size_t i = 0; i < kPairs; ++i) {
          sum[h][2 * i] = hn::MulAdd(weight, v[i].first, sum[h][2 * i]);
          sum[h][2 * i + 1] = hn::MulAdd(weight, v[i].second, sum[h][2 * i + 1]);
        }
      }
    }
    for (std::size_t h = 0; h < kHeads; ++h) {
      const Vec factor = hn::Set(d, rescale[h]);
      for (std::size_t i = 0; i < 2 * kPairs; ++i) {
        float* const target = acc + h * head_dim + begin + i * kLanes;
        hn::StoreU(hn::MulAdd(hn::LoadU(d, target), factor, sum[h][i]), d, target);
      }
    }
  }
  if constexpr (kPairs > 1) {
    add_values<Cache, kHeads, kPairs / 2>(values, p, rescale, head_dim, begin, ahead, acc);
  }
}

// Widens a tile into wide [tile tokens, head_dim].
template <class Cache>
void widen_tile(const Rows<typename Cache::Element>& rows, std::size_t head_dim,
                Prefetcher<typename Cache::Element>& ahead, float* HWY_RESTRICT wide,
                Rows<float>& wide_rows) {
  const Floats d;
  for (std::size_t t = 0; t < rows.count; ++t) {
    float* const target = wide + t * head_dim;
    for (std::size_t i = 0; i < head_dim; i += kPairLanes) {
      ahead.template advance<kPairLanes * sizeof(typename Cache::Element)>(i / kPairLanes);
      const VecPair pair = Cache::load(rows.row[t] + i);
      hn::StoreU(pair.first, d, target + i);
      hn::StoreU(pair.second, d, target + i + kLanes);
    }
    wide_rows.row[t] = target;
  }
  wide_rows.count = rows.count;
}

}  // namespace HWY_NAMESPACE
}  // namespace headrace::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard
