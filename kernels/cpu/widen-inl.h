// From stored cache elements to float32 vectors, a few at a time. Included once per instruction
// set.
#if defined(HEADRACE_CPU_WIDEN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_CPU_WIDEN_INL_H_
#undef HEADRACE_CPU_WIDEN_INL_H_
#else
#define HEADRACE_CPU_WIDEN_INL_H_
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "kernels/cpu/attend.h"
#include "kernels/cpu/convert.h"

// With AVX512_BF16, asked for at run time, bf16 products need no widening. Highway's AVX3_DL, which
// begins at the machines just before it, leaves the instruction out; this is its list and that.
#if HWY_TARGET == HWY_AVX3_DL
#undef HWY_TARGET_STR
#define HWY_TARGET_STR                                                            \
  HWY_TARGET_STR_AVX3                                                             \
  ",vpclmulqdq,vaes,gfni,avx512vbmi,avx512vbmi2,avxvnni,avx512vnni,avx512bitalg," \
  "avx512vpopcntdq,avx512bf16"
#endif

HWY_BEFORE_NAMESPACE();
namespace headrace::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vec = hn::Vec<Floats>;
inline constexpr std::size_t kLanes = HWY_LANES(float);
inline constexpr std::size_t kPairLanes = 2 * kLanes;

template <class V, std::size_t kNumVectors>
struct Loaded {
  static constexpr std::size_t kVectors = kNumVectors;
  V vector[kVectors];
};

template <std::size_t kNumVectors>
using Widened = Loaded<Vec, kNumVectors>;

// sum + vector * factors.
HWY_INLINE Vec multiply_add(Vec vector, const float* factors, Vec sum) {
  return hn::MulAdd(vector, hn::LoadU(Floats(), factors), sum);
}

HWY_INLINE void store(Vec vector, float* target) { hn::StoreU(vector, Floats(), target); }

// A cache type: Element is what lies in memory, load() widens kElements of them. Where element i of
// a load lies in the vectors, position(i) says: an order that saves shuffles; queries are brought
// into it, results back. Widened values are 1 / kUnit of the true ones. With kHidesNans the NaN
// codes come out as numbers, and has_nan_code() finds them. Pairs, where there is one, loads the
// same elements as pairs of bf16 values instead, for products with bf16 factors.

constexpr std::size_t same_position(std::size_t i) { return i; }

// The elements at even places in one vector, those at odd places in the next.
constexpr std::size_t even_odd_position(std::size_t i) {
  return i / kPairLanes * kPairLanes + i % 2 * kLanes + i % kPairLanes / 2;
}

// Whether this machine has products of pairs.
inline bool can_multiply_pairs() {
#if HWY_TARGET == HWY_AVX3_DL
  return __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

struct Float32 {
  using Wide = Float32;
  using Element = float;
  static constexpr std::size_t kElements = kPairLanes;
  static constexpr auto position = same_position;
  static constexpr float kUnit = 1.0f;
  static constexpr bool kHidesNans = false;

  static HWY_INLINE Widened<2> load(const Element* elements) {
    const Floats d;
    return {{hn::LoadU(d, elements), hn::LoadU(d, elements + kLanes)}};
  }
};

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

// For machines without the instructions below: one element at a time.
template <class Stored, float (*widen)(Stored)>
struct ScalarCache {
  using Wide = Float32;
  using Element = Stored;
  static constexpr std::size_t kElements = kPairLanes;
  static constexpr auto position = same_position;
  static constexpr float kUnit = 1.0f;
  static constexpr bool kHidesNans = false;

  static HWY_INLINE Widened<2> load(const Element* elements) {
    float widened[kPairLanes];
    for (std::size_t i = 0; i < kPairLanes; ++i) widened[i] = widen(elements[i]);
    return Float32::load(widened);
  }
};

using BFloat16 = ScalarCache<std::uint16_t, float_of_bf16>;
using Float16 = ScalarCache<std::uint16_t, float_of_f16>;
using Float8E4M3 = ScalarCache<std::uint8_t, float_of_e4m3>;

#else

using Bytes = hn::Repartition<std::uint8_t, Floats>;
using Words = hn::Repartition<std::uint32_t, Floats>;

// Two bf16 values per word.
HWY_INLINE Vec widen_lower_halves(hn::Vec<Words> words) {
  return hn::BitCast(Floats(), hn::ShiftLeft<16>(words));
}
HWY_INLINE Vec widen_upper_halves(hn::Vec<Words> words) {
  return hn::BitCast(Floats(), hn::And(words, hn::Set(Words(), 0xffff0000u)));
}

#if HWY_TARGET == HWY_AVX3_DL

// sum + the two products of each pair. bf16 products are exact in float32; subnormal values count
// as 0.
HWY_INLINE Vec multiply_add(hn::Vec<Words> pairs, const std::uint16_t* factors, Vec sum) {
  return Vec{_mm512_dpbf16_ps(sum.raw, reinterpret_cast<__m512bh>(pairs.raw),
                              reinterpret_cast<__m512bh>(_mm512_loadu_si512(factors)))};
}

HWY_INLINE void store(hn::Vec<Words> pairs, std::uint16_t* target) {
  _mm512_storeu_si512(target, pairs.raw);
}

struct BFloat16Pairs {
  using Wide = BFloat16Pairs;
  using Element = std::uint16_t;
  static constexpr std::size_t kElements = kPairLanes;
  static constexpr auto position = same_position;

  static HWY_INLINE Loaded<hn::Vec<Words>, 1> load(const Element* elements) {
    const hn::Repartition<std::uint16_t, Floats> d16;
    return {{hn::BitCast(Words(), hn::LoadU(d16, elements))}};
  }
};

#endif

struct BFloat16 {
#if HWY_TARGET == HWY_AVX3_DL
  using Pairs = BFloat16Pairs;
#endif
  using Wide = Float32;
  using Element = std::uint16_t;
  static constexpr std::size_t kElements = kPairLanes;
  static constexpr auto position = even_odd_position;
  static constexpr float kUnit = 1.0f;
  static constexpr bool kHidesNans = false;

  static HWY_INLINE Widened<2> load(const Element* elements) {
    const hn::Repartition<std::uint16_t, Floats> d16;
    const auto words = hn::BitCast(Words(), hn::LoadU(d16, elements));
    return {{widen_lower_halves(words), widen_upper_halves(words)}};
  }
};

struct Float16 {
  using Wide = Float32;
  using Element = std::uint16_t;
  static constexpr std::size_t kElements = kPairLanes;
  static constexpr auto position = same_position;
  static constexpr float kUnit = 1.0f;
  static constexpr bool kHidesNans = false;

  static HWY_INLINE Widened<2> load(const Element* elements) {
    const Floats d;
    const hn::Rebind<std::uint16_t, Floats> d16;
    const hn::Rebind<hwy::float16_t, Floats> dhalf;
    return {{hn::PromoteTo(d, hn::BitCast(dhalf, hn::LoadU(d16, elements))),
             hn::PromoteTo(d, hn::BitCast(dhalf, hn::LoadU(d16, elements + kLanes)))}};
  }
};

#if HWY_TARGET == HWY_AVX3_DL

// The bf16 values of the 128 codes without their sign, lower and upper bytes apart.
struct E4M3Table {
  alignas(64) std::uint8_t lower[128];
  alignas(64) std::uint8_t upper[128];
};

inline constexpr E4M3Table kE4M3Table = [] {
  E4M3Table table{};
  for (std::uint8_t code = 0; code < 128; ++code) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(float_of_e4m3(code)) >> 16;
    table.lower[code] = static_cast<std::uint8_t>(bits);
    table.upper[code] = static_cast<std::uint8_t>(bits >> 8);
  }
  return table;
}();

// The entries of 64 codes, of which the highest bit does not count. An instruction that Highway
// does not have.
HWY_INLINE hn::Vec<Bytes> look_up(const std::uint8_t (&table)[128], hn::Vec<Bytes> codes) {
  const Bytes d;
  return hn::Vec<Bytes>{
      _mm512_permutex2var_epi8(hn::Load(d, table).raw, codes.raw, hn::Load(d, table + 64).raw)};
}

struct Float8E4M3Pairs {
  using Wide = BFloat16Pairs;
  using Element = std::uint8_t;
  static constexpr std::size_t kElements = 64;

  // Interleaving puts the first 8 of every 16 elements into the first vector.
  static constexpr std::size_t position(std::size_t i) {
    return i % 16 / 8 * kPairLanes + i / 16 * 8 + i % 8;
  }

  static HWY_INLINE Loaded<hn::Vec<Words>, 2> load(const Element* elements) {
    const Bytes d;
    const auto codes = hn::LoadU(d, elements);
    const auto lower = look_up(kE4M3Table.lower, codes);
    const auto upper =
        hn::OrAnd(look_up(kE4M3Table.upper, codes), codes, hn::Set(d, std::uint8_t{0x80}));
    return {{hn::BitCast(Words(), hn::InterleaveLower(d, lower, upper)),
             hn::BitCast(Words(), hn::InterleaveUpper(d, lower, upper))}};
  }
};

struct Float8E4M3 {
  using Pairs = Float8E4M3Pairs;
  using Wide = Float32;
  using Element = std::uint8_t;
  static constexpr std::size_t kElements = Pairs::kElements;
  static constexpr float kUnit = 1.0f;
  static constexpr bool kHidesNans = false;

  static constexpr std::size_t position(std::size_t i) {
    return even_odd_position(Pairs::position(i));
  }

  static HWY_INLINE Widened<4> load(const Element* elements) {
    const auto pairs = Pairs::load(elements);
    return {{widen_lower_halves(pairs.vector[0]), widen_upper_halves(pairs.vector[0]),
             widen_lower_halves(pairs.vector[1]), widen_upper_halves(pairs.vector[1])}};
  }
};

#else

// Sign, exponent and mantissa of e4m3 moved to their places in fp16 are the value times 2^-8, since
// the exponent biases are 7 and 15; subnormals included. The two NaN codes are not.
struct Float8E4M3 {
  using Wide = Float32;
  using Element = std::uint8_t;
  static constexpr std::size_t kElements = kPairLanes;
  static constexpr auto position = same_position;
  static constexpr float kUnit = 256.0f;
  static constexpr bool kHidesNans = true;

  static HWY_INLINE Widened<2> load(const Element* elements) {
    const Floats d;
    const hn::Repartition<std::int16_t, Floats> d16;
    const hn::Rebind<std::int8_t, decltype(d16)> d8;
    const hn::Repartition<hwy::float16_t, Floats> dhalf;
    const hn::Half<decltype(dhalf)> dlower;
    const auto codes =
        hn::PromoteTo(d16, hn::LoadU(d8, reinterpret_cast<const std::int8_t*>(elements)));
    // Sign extension has put copies of the sign in bits 7 to 15; after the shift, bit 14 is one.
    const auto halves = hn::BitCast(
        dhalf, hn::And(hn::ShiftLeft<7>(codes), hn::Set(d16, static_cast<std::int16_t>(0xbfff))));
    return {{hn::PromoteTo(d, hn::LowerHalf(dlower, halves)),
             hn::PromoteTo(d, hn::UpperHalf(dlower, halves))}};
  }
};

#endif

#endif

inline bool is_nan_code(std::uint8_t code) { return (code & 0x7f) == 0x7f; }

// Whether any of the rows [num_rows][head_dim] holds a NaN code: without its sign it is the largest
// code. Two instructions per vector on top of the loop.
HWY_INLINE bool has_nan_code(const std::uint8_t* const* rows, std::size_t num_rows,
                             std::size_t head_dim) {
  const hn::ScalableTag<std::uint8_t> d8;
  const std::size_t lanes = hn::Lanes(d8);
  const auto magnitude_bits = hn::Set(d8, std::uint8_t{0x7f});
  auto largest = hn::Zero(d8);
  for (std::size_t t = 0; t < num_rows; ++t) {
    const std::uint8_t* const row = rows[t];
    for (std::size_t i = 0; i + lanes <= head_dim; i += lanes) {
      largest = hn::Max(largest, hn::And(hn::LoadU(d8, row + i), magnitude_bits));
    }
    // Overlaps the vector before where the head dim is no multiple.
    largest = hn::Max(largest, hn::And(hn::LoadU(d8, row + head_dim - lanes), magnitude_bits));
  }
  return !hn::AllFalse(d8, hn::Eq(largest, magnitude_bits));
}

// Whether a head dim, a multiple of kHeadDimUnit, may end within a load.
template <class Cache>
inline constexpr bool kEndsWithinLoad = kHeadDimUnit % Cache::kElements != 0;

// The first `count` elements of a load, as a head dim may end within one; zeros follow.
template <class Cache>
HWY_INLINE auto load_part(const typename Cache::Element* elements, std::size_t count) {
  typename Cache::Element padded[Cache::kElements] = {};
  std::memcpy(padded, elements, count * sizeof(typename Cache::Element));
  return Cache::load(padded);
}

// Where element d of a head lies in the order of the loaded elements of Cache.
template <class Cache>
constexpr std::size_t loaded_index(std::size_t d) {
  return d / Cache::kElements * Cache::kElements + Cache::position(d % Cache::kElements);
}

}  // namespace HWY_NAMESPACE
}  // namespace headrace::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard
