#include "bench/kv_pools.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "bench/number_format.h"
#include "bench/threads.h"

namespace headrace::bench {
namespace {

// A pool repeats a block of this many values: drawing each of them anew would take longer than the
// measurement. Odd, so that no two tokens or heads near each other are alike.
constexpr std::int64_t kMaxBlockElements = (1 << 20) + 1;

// Tables of tiny batches would outgrow the pools.
constexpr std::int64_t kMaxSets = 1024;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

KvPools::KvPools(const Device& device, const PoolShape& shape,
                 std::span<const std::int32_t> seq_lens, std::size_t working_set_bytes,
                 Random& random)
    : shape_(shape), num_requests_(static_cast<std::int64_t>(seq_lens.size())) {
  std::int64_t set_pages = 0;
  for (const std::int32_t length : seq_lens) {
    const std::int64_t pages = ceil_div(length, shape_.page_size);
    set_pages += pages;
    table_stride_ = std::max(table_stride_, pages);
  }
  const auto page_bytes =
      2 * shape_.page_elements() * static_cast<std::int64_t>(format_of(shape_.dtype).bytes());
  if (set_pages > 0) {
    num_sets_ =
        std::clamp(ceil_div(static_cast<std::int64_t>(working_set_bytes), set_pages * page_bytes),
                   std::int64_t{1}, kMaxSets);
  }
  num_pages_ = std::max<std::int64_t>(1, set_pages * num_sets_);
  if (num_pages_ > std::numeric_limits<std::int32_t>::max()) {
    throw std::runtime_error(fmt::format("needs {} pages, at most {} have an id", num_pages_,
                                         std::numeric_limits<std::int32_t>::max()));
  }

  device.require_memory(static_cast<std::size_t>(num_pages_ * page_bytes));

  std::vector<std::int32_t> pages(static_cast<std::size_t>(num_pages_));
  std::iota(pages.begin(), pages.end(), 0);
  random.shuffle(std::span(pages));
  tables_.assign(static_cast<std::size_t>(num_sets_ * num_requests_ * table_stride_), -1);
  auto page = pages.begin();
  auto row = tables_.begin();
  for (std::int64_t set = 0; set < num_sets_; ++set) {
    for (const std::int32_t length : seq_lens) {
      const auto row_pages = ceil_div(length, shape_.page_size);
      std::copy_n(page, row_pages, row);
      page += row_pages;
      row += table_stride_;
    }
  }

  k_ = random_pool(device, random);
  v_ = random_pool(device, random);
}

// Several threads write it, so that on a machine with several memory nodes all of them hold a part.
Memory KvPools::random_pool(const Device& device, Random& random) const {
  const NumberFormat format = format_of(shape_.dtype);
  const std::int64_t num_elements = num_pages_ * shape_.page_elements();
  const std::int64_t block_elements = std::min(num_elements, kMaxBlockElements);
  std::vector<std::byte> block(static_cast<std::size_t>(block_elements) * format.bytes());
  for (std::int64_t i = 0; i < block_elements; ++i) {
    store(static_cast<float>(random.normal()), block.data(), i, format);
  }

  const std::size_t num_bytes = static_cast<std::size_t>(num_elements) * format.bytes();
  Memory pool = device.allocate(num_bytes);
  const auto num_threads = static_cast<std::size_t>(device.num_workers());
  on_threads(device.num_workers(), [&](int thread) {
    const std::size_t stride = block.size() * num_threads;
    for (std::size_t at = block.size() * static_cast<std::size_t>(thread); at < num_bytes;
         at += stride) {
      std::memcpy(pool.get() + at, block.data(), std::min(block.size(), num_bytes - at));
    }
  });
  return pool;
}

}  // namespace headrace::bench
