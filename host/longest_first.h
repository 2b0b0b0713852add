// Sorts the requests of a batch by length, longest first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headrace::host {

class LongestFirst {
 public:
  explicit LongestFirst(std::uint32_t max_requests);

  // Row numbers of seq_lens in descending order of length in tiles; rows of equally many tiles in
  // ascending order. Valid until the next call.
  std::span<const std::uint32_t> sort(std::span<const std::int32_t> seq_lens,
                                      std::int32_t tile_tokens) noexcept;

 private:
  std::vector<std::uint32_t> tiles_;    // [max_requests]
  std::vector<std::uint32_t> rows_;     // [max_requests]
  std::vector<std::uint32_t> scratch_;  // [max_requests]
};

}  // namespace headrace::host
