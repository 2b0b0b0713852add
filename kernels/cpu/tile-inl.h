// The three steps of a tile of tokens: scores for a block of 1, 2 or 4 query heads, softmax for all
// heads, values for a block. Included once per instruction set.
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

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "kernels/cpu/attend.h"
#include "kernels/cpu/rows-inl.h"
#include "kernels/cpu/widen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::cpu {
namespace HWY_NAMESPACE {

// Two fused multiply-adds per cycle with a latency of 4: eight accumulators keep both units busy.
// More of them, where there are registers, mean fewer loads of queries and weights per element.
inline constexpr std::size_t kAccumulators = kLanes == 16 ? 16 : 8;
inline constexpr std::size_t kAccumulatorsPerHead = std::min<std::size_t>(kAccumulators, 8);

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
    const hn::Half<D> half;
    const auto sum = hn::Add(hn::LowerHalf(half, abce), hn::UpperHalf(half, abce));
    if constexpr (hn::MaxLanes(D()) == 8) {
      hn::StoreU(sum, half, sums);
    } else {
      static_assert(hn::MaxLanes(D()) == 16);
      const hn::Half<decltype(half)> quarter;
      hn::StoreU(hn::Add(hn::LowerHalf(quarter, sum), hn::UpperHalf(quarter, sum)), quarter, sums);
    }
  }
#endif
}

// Ways to load at a place of a row: a whole load, or the part of one at the row's end.
template <class Cache>
struct WholeLoad {
  HWY_INLINE auto operator()(const typename Cache::Element* elements) const {
    return Cache::load(elements);
  }
};
template <class Cache>
struct PartLoad {
  std::size_t count;

  HWY_INLINE auto operator()(const typename Cache::Element* elements) const {
    return load_part<Cache>(elements, count);
  }
};

// sum[t][h] += q[h] . row[t] for the elements of one load, at `at`.
template <class Cache, std::size_t kHeads, std::size_t kTokens, class Load, class Query>
HWY_INLINE void add_products(const typename Cache::Element* const (&row)[kTokens], std::size_t at,
                             Load load, const Query* HWY_RESTRICT q, std::size_t stride,
                             Vec (&sum)[kTokens * kHeads]) {
  HWY_UNROLL(8)
  for (std::size_t t = 0; t < kTokens; ++t) {
    const auto k = load(row[t] + at);
    constexpr std::size_t kPerVector = Cache::kElements / k.kVectors;
    for (std::size_t i = 0; i < k.kVectors; ++i) {
      for (std::size_t h = 0; h < kHeads; ++h) {
        Vec& s = sum[t * kHeads + h];
        s = multiply_add(k.vector[i], q + h * stride + at + i * kPerVector, s);
      }
    }
  }
}

// scores[t][h] = q[h] . k[t] for all tokens of the tile, q [kHeads, stride], scores [tokens,
// columns]. May write up to kMinTileTokens - 1 tokens past the last one.
template <class Cache, std::size_t kHeads, class Query, class Ahead>
HWY_INLINE void score_tile(const Rows<typename Cache::Element>& keys, const Query* HWY_RESTRICT q,
                           std::size_t head_dim, std::size_t stride, Ahead& ahead,
                           std::size_t columns, float* HWY_RESTRICT scores) {
  using Element = typename Cache::Element;
  constexpr std::size_t kTokens =
      std::min({kAccumulators / kHeads, kAccumulatorsPerHead, kChunkTokens<Element>});
  static_assert(kMinTileTokens % kTokens == 0);
  constexpr std::size_t kBytes = kTokens * Cache::kElements * sizeof(Element);
  const Floats d;
  const std::size_t rest = head_dim % Cache::kElements;
  for (std::size_t begin = 0; begin < keys.count; begin += kTokens) {
    const Element* row[kTokens];
    for (std::size_t t = 0; t < kTokens; ++t) {
      row[t] = keys.row[std::min(begin + t, keys.count - 1)];
    }
    Vec sum[kTokens * kHeads];
    HWY_UNROLL(16)
    for (Vec& s : sum) s = hn::Zero(d);
    for (std::size_t at = 0; at < head_dim - rest; at += Cache::kElements) {
      ahead.template advance<kBytes>(at / Cache::kElements);
      add_products<Cache, kHeads>(row, at, WholeLoad<Cache>(), q, stride, sum);
    }
    if (kEndsWithinLoad<Cache> && rest != 0) {
      add_products<Cache, kHeads>(row, head_dim - rest, PartLoad<Cache>{rest}, q, stride, sum);
    }
    HWY_UNROLL(4)
    for (std::size_t i = 0; i < kTokens * kHeads; i += 4) {
      float four[4];
      store_four_sums(d, sum[i], sum[i + 1], sum[i + 2], sum[i + 3], four);
      for (std::size_t j = 0; j < 4; ++j) {
        scores[(begin + (i + j) / kHeads) * columns + (i + j) % kHeads] = four[j];
      }
    }
  }
}

// Turns scores [num_tokens, columns] into exp(factor * score - max) and brings the state up to
// date. Columns lie side by side in vectors, so the heads of all KV heads of an item go through
// together and nothing is reduced across lanes.
inline void softmax_tile(float* HWY_RESTRICT scores, std::size_t num_tokens, std::size_t columns,
                         const SoftmaxState& state) {
  const Floats d;
  const Vec minus_infinity = hn::Set(d, -std::numeric_limits<float>::infinity());
  for (std::size_t c = 0; c < columns; c += kLanes) {
    float* const column = scores + c;
    const Vec factor = hn::LoadU(d, state.factor + c);
    const Vec old = hn::LoadU(d, state.max + c);
    Vec max = old;
    for (std::size_t t = 0; t < num_tokens; ++t) {
      const Vec score = hn::Mul(hn::LoadU(d, column + t * columns), factor);
      hn::StoreU(score, d, column + t * columns);
      max = hn::Max(score, max);
    }
    // Scores that are all -inf have no finite maximum to subtract: -inf - -inf would be NaN.
    const Vec base = hn::IfThenZeroElse(hn::Eq(max, minus_infinity), max);
    Vec sum = hn::Zero(d);
    for (std::size_t t = 0; t < num_tokens; ++t) {
      const Vec exponent = hn::Sub(hn::LoadU(d, column + t * columns), base);
      // Exp() makes 0 of a NaN, which has to show in the result.
      const Vec p = hn::IfThenElse(hn::IsNaN(exponent), exponent, hn::Exp(d, exponent));
      hn::StoreU(p, d, column + t * columns);
      sum = hn::Add(sum, p);
    }
    hn::StoreU(max, d, state.max + c);
    hn::StoreU(hn::Exp(d, hn::Sub(old, base)), d, state.rescale + c);
    hn::StoreU(sum, d, state.tile_sum + c);
  }
  for (std::size_t c = 0; c < columns; ++c) {
    state.sum[c] = state.sum[c] * state.rescale[c] + state.tile_sum[c];
  }
}

// acc[h] = acc[h] * rescale[h] + sum over t of p[t][h] * v[t], for the elements of kLoads loads at
// `at`; p [tokens, columns], acc [kHeads, stride]. Sums over a tile begin at 0, which keeps
// rounding errors small in long requests.
template <class Cache, std::size_t kHeads, std::size_t kLoads, class Load, class Ahead>
HWY_INLINE void add_columns(const Rows<typename Cache::Element>& values, std::size_t at, Load load,
                            const float* HWY_RESTRICT p, std::size_t columns, const float* rescale,
                            std::size_t stride, Ahead& ahead, float* HWY_RESTRICT acc) {
  constexpr std::size_t kBytes = kLoads * Cache::kElements * sizeof(typename Cache::Element);
  constexpr std::size_t kVectors = kLoads * Cache::kElements / kLanes;
  constexpr std::size_t kPerLoad = kVectors / kLoads;
  const Floats d;
  Vec sum[kHeads][kVectors];
  for (auto& head : sum) {
    for (Vec& s : head) s = hn::Zero(d);
  }
  for (std::size_t t = 0; t < values.count; ++t) {
    ahead.template advance<kBytes>(t);
    Vec weight[kHeads];
    for (std::size_t h = 0; h < kHeads; ++h) weight[h] = hn::Set(d, p[t * columns + h]);
    for (std::size_t n = 0; n < kLoads; ++n) {
      const auto v = load(values.row[t] + at + n * Cache::kElements);
      for (std::size_t i = 0; i < kPerLoad; ++i) {
        for (std::size_t h = 0; h < kHeads; ++h) {
          Vec& s = sum[h][n * kPerLoad + i];
          s = hn::MulAdd(weight[h], v.vector[i], s);
        }
      }
    }
  }
  for (std::size_t h = 0; h < kHeads; ++h) {
    const Vec factor = hn::Set(d, rescale[h]);
    for (std::size_t i = 0; i < kVectors; ++i) {
      float* const target = acc + h * stride + at + i * kLanes;
      hn::StoreU(hn::MulAdd(hn::LoadU(d, target), factor, sum[h][i]), d, target);
    }
  }
}

// The same for all elements from `at` on: kLoads loads at a time, then fewer.
template <class Cache, std::size_t kHeads, std::size_t kLoads, class Ahead>
HWY_INLINE void add_values(const Rows<typename Cache::Element>& values, std::size_t at,
                           const float* HWY_RESTRICT p, std::size_t columns, const float* rescale,
                           std::size_t head_dim, std::size_t stride, Ahead& ahead,
                           float* HWY_RESTRICT acc) {
  for (; at + kLoads * Cache::kElements <= head_dim; at += kLoads * Cache::kElements) {
    add_columns<Cache, kHeads, kLoads>(values, at, WholeLoad<Cache>(), p, columns, rescale, stride,
                                       ahead, acc);
  }
  if constexpr (kLoads > 1) {
    add_values<Cache, kHeads, kLoads / 2>(values, at, p, columns, rescale, head_dim, stride, ahead,
                                          acc);
  } else if (kEndsWithinLoad<Cache> && at < head_dim) {
    NoPrefetcher none;
    add_columns<Cache, kHeads, 1>(values, at, PartLoad<Cache>{head_dim - at}, p, columns, rescale,
                                  stride, none, acc);
  }
}

// Widens rows into wide [tokens, stride].
template <class Cache, class Wide>
void widen_rows(const Rows<typename Cache::Element>& rows, std::size_t head_dim, std::size_t stride,
                Prefetcher<typename Cache::Element>& ahead, Wide* HWY_RESTRICT wide,
                Rows<Wide>& wide_rows) {
  constexpr std::size_t kBytes = Cache::kElements * sizeof(typename Cache::Element);
  for (std::size_t t = 0; t < rows.count; ++t) {
    Wide* const target = wide + t * stride;
    for (std::size_t at = 0; at < head_dim; at += Cache::kElements) {
      ahead.template advance<kBytes>(at / Cache::kElements);
      const std::size_t count = std::min(head_dim - at, Cache::kElements);
      const auto loaded = kEndsWithinLoad<Cache> && count < Cache::kElements
                              ? load_part<Cache>(rows.row[t] + at, count)
                              : Cache::load(rows.row[t] + at);
      for (std::size_t i = 0; i < loaded.kVectors; ++i) {
        store(loaded.vector[i], target + at + i * (Cache::kElements / loaded.kVectors));
      }
    }
    wide_rows.row[t] = target;
  }
  wide_rows.count = rows.count;
}

}  // namespace HWY_NAMESPACE
}  // namespace headrace::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard
