#include "host/longest_first.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>

namespace headrace::host {

LongestFirst::LongestFirst(std::uint32_t max_requests)
    : tiles_(max_requests), rows_(max_requests), scratch_(max_requests) {}

std::span<const std::uint32_t> LongestFirst::sort(std::span<const std::int32_t> seq_lens,
                                                  std::int32_t tile_tokens) noexcept {
  const std::size_t num_rows = seq_lens.size();
  const auto tile = static_cast<std::uint32_t>(tile_tokens);
  std::uint32_t most_tiles = 0;
  for (std::size_t row = 0; row < num_rows; ++row) {
    const auto len = static_cast<std::uint32_t>(std::max(seq_lens[row], 0));
    tiles_[row] = len / tile + (len % tile != 0);
    most_tiles = std::max(most_tiles, tiles_[row]);
  }
  std::iota(rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(num_rows), 0u);

  // A radix sort from the lowest byte up, each pass stable, for as many bytes as the longest needs.
  for (int shift = 0; shift < 32 && most_tiles >> shift != 0; shift += 8) {
    const auto digit = [&](std::uint32_t row) { return 255 - (tiles_[row] >> shift & 255); };
    std::array<std::uint32_t, 256> place{};
    for (std::size_t i = 0; i < num_rows; ++i) ++place[digit(rows_[i])];
    std::exclusive_scan(place.begin(), place.end(), place.begin(), 0u);
    for (std::size_t i = 0; i < num_rows; ++i) scratch_[place[digit(rows_[i])]++] = rows_[i];
    rows_.swap(scratch_);
  }
  return {rows_.data(), num_rows};
}

}  // namespace headrace::host
