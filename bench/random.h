// Random numbers that are the same with every standard library (std::mt19937_64 is fixed by the
// standard, the distributions are not), so that a seed names the same batch everywhere.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <random>
#include <span>
#include <utility>

namespace headrace::bench {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  // In [0, 1).
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }

  // Mean 0, deviation 1 (Box-Muller).
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }

  // In [0, count).
  std::size_t below(std::size_t count) {
    return static_cast<std::size_t>(uniform() * static_cast<double>(count));
  }

  // Draws some places ahead, so that their memory is on its way: page tables outgrow the caches.
  template <typename T>
  void shuffle(std::span<T> values) {
    std::array<std::size_t, 32> places;
    for (std::size_t left = values.size(); left > 1;) {
      const std::size_t count = std::min(places.size(), left - 1);
      for (std::size_t i = 0; i < count; ++i) {
        places[i] = below(left - i);
        __builtin_prefetch(&values[places[i]], 1);
      }
      for (std::size_t i = 0; i < count; ++i) std::swap(values[left - i - 1], values[places[i]]);
      left -= count;
    }
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace headrace::bench
