// The rows of keys or values that a tile is made of, and how they come into the caches in time.
// Included once per instruction set.
#if defined(HEADRACE_CPU_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_CPU_ROWS_INL_H_
#undef HEADRACE_CPU_ROWS_INL_H_
#else
#define HEADRACE_CPU_ROWS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/cpu/attend.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::cpu {
namespace HWY_NAMESPACE {

// Tokens that all heads of an item are worked on for before the next ones, where the heads of a
// token lie next to each other: so memory is read in order, measured (bench/RESULTS.md). Fewer save
// nothing of that and cost more; fp8 has more arithmetic per byte.
template <class Element>
inline constexpr std::size_t kChunkTokens = sizeof(Element) == 1 ? 16 : 4;

// Rows of keys or values of one KV head, one per token of a tile or of a part of it.
template <class Element>
struct Rows {
  const Element* row[kMaxTileTokens];
  std::size_t count;
};

inline constexpr std::size_t kCacheLineBytes = 64;

// Asks for the keys and values of the next tile, in the order of memory: that is what hardware
// prefetchers join in on, while a walk over one head's rows in an NHD pool reads at less than half
// the rate. Two streams at once, of keys and of values, read faster than one. The steps are spread
// evenly over the arithmetic: a core has some 20 misses under way at most, so memory rests while
// none are added, and what is asked for while they are full is dropped.
template <class Element>
class Prefetcher {
 public:
  // `keys` and `values` are those of the first head and must outlive this; at least one. Heads that
  // lie next to each other are one run of memory per token.
  Prefetcher(const Rows<Element>& keys, const Rows<Element>& values, std::size_t num_heads,
             std::int64_t key_head_stride, std::int64_t value_head_stride, std::size_t head_dim)
      : keys_(keys), values_(values) {
    const bool adjacent = key_head_stride == static_cast<std::int64_t>(head_dim) &&
                          value_head_stride == static_cast<std::int64_t>(head_dim);
    run_bytes_ = (adjacent ? num_heads : 1) * head_dim * sizeof(Element);
    heads_left_ = (adjacent ? 1 : num_heads) - 1;
    key_head_stride_ = adjacent ? 0 : key_head_stride;
    value_head_stride_ = adjacent ? 0 : value_head_stride;
    const std::size_t run_steps = (run_bytes_ + kCacheLineBytes - 1) / kCacheLineBytes;
    steps_left_ = static_cast<std::int64_t>(run_steps * keys.count * (heads_left_ + 1));
    begin_run();
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
    while (steps_left_ > 0) step();
  }

 private:
  // A line of keys and one of values.
  static constexpr std::size_t kStepBytes = 2 * kCacheLineBytes;

  // Past the end it asks for the last run again, which is cheaper than to look where the end is.
  HWY_INLINE void step() {
    hwy::Prefetch(key_ + offset_);
    hwy::Prefetch(value_ + offset_);
    offset_ += kCacheLineBytes;
    --steps_left_;
    if (HWY_UNLIKELY(offset_ >= run_bytes_)) next_run();
  }

  HWY_INLINE void next_run() {
    if (token_ + 1 < keys_.count) {
      ++token_;
    } else if (heads_left_ > 0) {
      --heads_left_;
      token_ = 0;
      key_shift_ += key_head_stride_;
      value_shift_ += value_head_stride_;
    }
    begin_run();
  }

  HWY_INLINE void begin_run() {
    key_ = reinterpret_cast<const char*>(keys_.row[token_] + key_shift_);
    value_ = reinterpret_cast<const char*>(values_.row[token_] + value_shift_);
    offset_ = 0;
  }

  const Rows<Element>& keys_;
  const Rows<Element>& values_;
  std::size_t run_bytes_;
  std::size_t heads_left_;
  std::int64_t key_head_stride_;
  std::int64_t value_head_stride_;
  std::int64_t key_shift_ = 0;
  std::int64_t value_shift_ = 0;
  std::size_t token_ = 0;
  const char* key_;
  const char* value_;
  std::size_t offset_;
  std::int64_t steps_left_;
};

// For tiles that are widened already.
struct NoPrefetcher {
  template <std::size_t kBytes>
  HWY_INLINE void advance(std::size_t) {}
};

}  // namespace HWY_NAMESPACE
}  // namespace headrace::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard
