// Shares tile a request of any length, whatever the shares are.
#include "scheduler/share.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/catch.h"
#include "tests/support/random.h"

namespace headrace::tests {
namespace {

using scheduler::kWholeShare;

constexpr std::int64_t kLongest = std::numeric_limits<std::int32_t>::max();

// Items that cut a request at random shares.
std::vector<scheduler::WorkItem> random_splits(Random& random) {
  std::vector<std::uint32_t> cuts = {0, kWholeShare};
  for (std::int64_t i = random.between(0, 40); i > 0; --i) {
    cuts.push_back(static_cast<std::uint32_t>(random.between(1, kWholeShare - 1)));
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<scheduler::WorkItem> items(cuts.size() - 1);
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].share_begin = static_cast<std::uint16_t>(cuts[i]);
    items[i].share_last = static_cast<std::uint16_t>(cuts[i + 1] - 1);
  }
  return items;
}

void require_exact_tiling(const std::vector<scheduler::WorkItem>& items, std::int64_t seq_len,
                          std::int64_t tile_tokens) {
  INFO("seq_len " << seq_len << ", tile " << tile_tokens);
  std::int64_t next = 0;
  for (const scheduler::WorkItem& item : items) {
    const scheduler::TokenRange range = scheduler::token_range(item, seq_len, tile_tokens);
    REQUIRE(range.begin == next);
    REQUIRE(range.end >= range.begin);
    REQUIRE((range.begin % tile_tokens == 0 || range.begin == seq_len));
    next = range.end;
  }
  REQUIRE(next == std::max<std::int64_t>(seq_len, 0));
}

}  // namespace

TEST_CASE("shares tile any length exactly") {
  const std::uint64_t seed = 20261201;
  INFO("seed " << seed);
  Random random(seed);
  for (int round = 0; round < 2000; ++round) {
    const auto items = random_splits(random);
    const auto tile = random.pick<std::int64_t>({1, 7, 16, 64, 100, 128, 4096});
    const std::int64_t highest = std::int64_t{1} << random.between(0, 31);
    require_exact_tiling(items, random.between(0, std::min(highest, kLongest)), tile);
    for (const std::int64_t seq_len : {std::int64_t{0}, std::int64_t{1}, tile - 1, tile, tile + 1,
                                       65536 * tile, kLongest - 1, kLongest}) {
      require_exact_tiling(items, std::min(seq_len, kLongest), tile);
    }
  }
}

TEST_CASE("a length below zero counts as zero") {
  const scheduler::WorkItem whole{0, 0, 0, kWholeShare - 1, 0, 1, 0};
  for (const std::int64_t seq_len : {std::int64_t{-1}, -kLongest}) {
    const scheduler::TokenRange range = scheduler::token_range(whole, seq_len, 64);
    REQUIRE(range.begin == 0);
    REQUIRE(range.end == 0);
  }
}

TEST_CASE("every tile of up to 65536 has a share of its own") {
  const std::uint64_t seed = 7;
  INFO("seed " << seed);
  Random random(seed);
  std::vector<std::int64_t> counts = {1, 2, 3, 65535, 65536};
  for (int i = 0; i < 50; ++i) counts.push_back(random.between(1, 65536));
  for (const std::int64_t tiles : counts) {
    bool exact = true;
    for (std::int64_t tile = 0; tile <= tiles; ++tile) {
      exact &= scheduler::tile_of_share(scheduler::share_of_tile(tile, tiles), tiles) == tile;
    }
    INFO("tiles " << tiles);
    REQUIRE(exact);
  }
}

TEST_CASE("beyond 65536 tiles the next boundary is found") {
  const std::uint64_t seed = 11;
  INFO("seed " << seed);
  Random random(seed);
  for (int round = 0; round < 100000; ++round) {
    const std::int64_t tiles = random.between(65537, kLongest);
    const std::int64_t tile = random.between(1, tiles);
    const std::uint32_t share = scheduler::share_of_tile(tile, tiles);
    INFO("tile " << tile << " of " << tiles);
    REQUIRE(share <= kWholeShare);
    REQUIRE(scheduler::tile_of_share(share, tiles) >= tile);
    REQUIRE(scheduler::tile_of_share(share - 1, tiles) < tile);
  }
}

}  // namespace headrace::tests
