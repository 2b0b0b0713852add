// Random numbers that are the same everywhere for a seed (splitmix64).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace headrace::tests {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  // lowest <= result <= highest.
  std::int64_t between(std::int64_t lowest, std::int64_t highest) {
    return lowest +
           static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(highest - lowest + 1));
  }

  bool one_in(std::int64_t n) { return between(1, n) == 1; }

  template <typename T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[between(0, static_cast<std::int64_t>(choices.size()) - 1)];
  }

  // 0 < result < 1.
  double uniform() { return (static_cast<double>(next() >> 12) + 0.5) * 0x1p-52; }

  // Mean 0, deviation 1 (Box-Muller).
  double normal() {
    return std::sqrt(-2 * std::log(uniform())) * std::cos(6.283185307179586 * uniform());
  }

  template <typename T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i) {
      const auto other = static_cast<std::size_t>(between(0, static_cast<std::int64_t>(i) - 1));
      std::swap(values[i - 1], values[other]);
    }
  }

 private:
  std::uint64_t state_;
};

}  // namespace headrace::tests
