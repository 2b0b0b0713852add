// From stored cache elements to float32 vectors, two at a time. Included once per instruction set.
#if defined(HEADRACE_CPU_WIDEN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_CPU_WIDEN_INL_H_
#undef HEADRACE_CPU_WIDEN_INL_H_
#else
#define HEADRACE_CPU_WIDEN_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/cpu/convert.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vec = hn::Vec<Floats>;
inline constexpr std::size_t kLanes = HWY_LANES(float);
// Elements per load; every head dim is a multiple.
inline constexpr std::size_t kPairLanes = 2 * kLanes;

struct VecPair {
  Vec first, second;
};

// A cache type: Element is what lies in memory, load() widens kPairLanes of them. With kEvenOdd the
// first vector holds the elements at even places and the second those at odd places, which saves a
// shuffle; queries are brought into the same order, results back. Widened values are 1 / kUnit of
// the true ones.

struct Float32 {
  using Element = float;
  static constexpr bool kEvenOdd = false;
  static constexpr float kUnit = 1.0f;

  static HWY_INLINE VecPair load(const Element* elements) {
    const Floats d;
    return {hn::LoadU(d, elements), hn::LoadU(d, elements + kLanes)};
  }
};

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

// For machines without the instructions below: one element at a time.
template <class Stored, float (*widen)(Stored)>
struct ScalarCache {
  using Element = Stored;
  static constexpr bool kEvenOdd = false;
  static constexpr float kUnit = 1.0f;

  static HWY_INLINE VecPair load(const Element* elements) {
    float widened[kPairLanes];
    for (std::size_t i = 0; i < kPairLanes; ++i) widened[i] = widen(elements[i]);
    return Float32::load(widened);
  }
};

using BFloat16 = ScalarCache<std::uint16_t, float_of_bf16>;
using Float16 = ScalarCache<std::uint16_t, float_of_f16>;
using Float8E4M3 = ScalarCache<std::uint8_t, float_of_e4m3>;

#else

struct BFloat16 {
  using Element = std::uint16_t;
  static constexpr bool kEvenOdd = true;
  static constexpr float kUnit = 1.0f;

  static HWY_INLINE VecPair load(const Element* elements) {
    const Floats d;
    const hn::Repartition<std::uint16_t, Floats> d16;
    const hn::Repartition<std::uint32_t, Floats> d32;
    const auto words = hn::BitCast(d32, hn::LoadU(d16, elements));
    return {hn::BitCast(d, hn::ShiftLeft<16>(words)),
            hn::BitCast(d, hn::And(words, hn::Set(d32, 0xffff0000u)))};
  }
};

struct Float16 {
  using Element = std::uint16_t;
  static constexpr bool kEvenOdd = false;
  static constexpr float kUnit = 1.0f;

  static HWY_INLINE VecPair load(const Element* elements) {
    const Floats d;
    const hn::Rebind<std::uint16_t, Floats> d16;
    const hn::Rebind<hwy::float16_t, Floats> dhalf;
    return {hn::PromoteTo(d, hn::BitCast(dhalf, hn::LoadU(d16, elements))),
            hn::PromoteTo(d, hn::BitCast(dhalf, hn::LoadU(d16, elements + kLanes)))};
  }
};

// Sign, exponent and mantissa of e4m3 moved to their places in fp16 are the value times 2^-8, since
// the exponent biases are 7 and 15; subnormals included. The two NaN codes are not: they come out
// as numbers, and has_nan_code() finds them.
struct Float8E4M3 {
  using Element = std::uint8_t;
  static constexpr bool kEvenOdd = false;
  static constexpr float kUnit = 256.0f;

  static HWY_INLINE VecPair load(const Element* elements) {
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
    return {hn::PromoteTo(d, hn::LowerHalf(dlower, halves)),
            hn::PromoteTo(d, hn::UpperHalf(dlower, halves))};
  }
};

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

// Where element d of a head lies in the order of the widened elements of Cache.
template <class Cache>
constexpr std::size_t widened_index(std::size_t d) {
  if (!Cache::kEvenOdd) return d;
  const std::size_t within = d % kPairLanes;
  return d - within + within / 2 + within % 2 * kLanes;
}

}  // namespace HWY_NAMESPACE
}  // namespace headrace::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard
