// From shares to tokens: the one place where a work item meets a live length.
#pragma once

#include <cstdint>

#include "scheduler/host_device.h"
#include "scheduler/work_item.h"

namespace headrace::scheduler {

// Half-open range of token positions within one request.
struct TokenRange {
  std::int64_t begin;
  std::int64_t end;
};

HEADRACE_HOST_DEVICE std::int64_t num_tiles(std::int64_t seq_len, std::int64_t tile_tokens) {
  return seq_len <= 0 ? 0 : (seq_len + tile_tokens - 1) / tile_tokens;
}

// The tile at which a share boundary falls. Monotonic in `share`, 0 for 0, `tiles` for kWholeShare:
// neighbouring shares use the same boundary, so they tile the request whatever its length.
HEADRACE_HOST_DEVICE std::int64_t tile_of_share(std::uint32_t share, std::int64_t tiles) {
  return static_cast<std::int64_t>(
      (static_cast<std::uint64_t>(share) * static_cast<std::uint64_t>(tiles)) >> 16);
}

// The smallest share whose boundary falls at or after `tile`; exact for up to 65536 tiles.
HEADRACE_HOST_DEVICE std::uint32_t share_of_tile(std::int64_t tile, std::int64_t tiles) {
  if (tiles <= 0) return 0;
  const auto scaled = static_cast<std::uint64_t>(tile) << 16;
  const auto divisor = static_cast<std::uint64_t>(tiles);
  return static_cast<std::uint32_t>((scaled + divisor - 1) / divisor);
}

// The tokens of `item` in a request that is `seq_len` tokens long now. Lengths below 0 count as 0.
// Boundaries are multiples of tile_tokens (the last one is the length itself).
HEADRACE_HOST_DEVICE TokenRange token_range(const WorkItem& item, std::int64_t seq_len,
                                            std::int64_t tile_tokens) {
  const std::int64_t tiles = num_tiles(seq_len, tile_tokens);
  const std::int64_t begin = tile_of_share(item.share_begin, tiles) * tile_tokens;
  const std::int64_t end = tile_of_share(share_end(item), tiles) * tile_tokens;
  const std::int64_t len = seq_len < 0 ? 0 : seq_len;
  return {begin < len ? begin : len, end < len ? end : len};
}

}  // namespace headrace::scheduler
