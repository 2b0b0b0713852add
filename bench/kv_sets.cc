#include "bench/kv_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "bench/number_format.h"
#include "bench/random.h"

namespace headrace::bench {
namespace {

// Tables of tiny batches would outgrow the pools.
constexpr std::int64_t kMaxSets = 1024;
// Of a set this many times as large as what makes another one cold (four caches), the cache keeps
// less than one per cent.
constexpr std::size_t kColdAlone = 32;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::size_t PoolShape::token_bytes() const {
  return static_cast<std::size_t>(num_kv_heads) * static_cast<std::size_t>(head_dim) *
         format_of(dtype).bytes();
}

SetSizes set_sizes(const PoolShape& shape, std::span<const std::int32_t> seq_lens,
                   std::size_t cold_bytes) {
  SetSizes sizes{.num_sets = 1,
                 .set_pages = 0,
                 .table_stride = 1,
                 .page_bytes = static_cast<std::size_t>(shape.page_size) * shape.token_bytes()};
  for (const std::int32_t length : seq_lens) {
    const std::int64_t pages = ceil_div(length, shape.page_size);
    sizes.set_pages += pages;
    sizes.table_stride = std::max(sizes.table_stride, pages);
  }
  sizes.set_pages = std::max(sizes.set_pages, std::int64_t{1});
  if (sizes.set_bytes() < kColdAlone * cold_bytes) {
    const auto others = ceil_div(static_cast<std::int64_t>(cold_bytes),
                                 static_cast<std::int64_t>(sizes.set_bytes()));
    sizes.num_sets = std::min(1 + others, kMaxSets);
  }
  return sizes;
}

std::vector<std::int32_t> random_tables(const SetSizes& sizes, std::int32_t page_size,
                                        std::span<const std::int32_t> seq_lens,
                                        std::uint64_t seed) {
  if (sizes.num_pages() > std::numeric_limits<std::int32_t>::max()) {
    throw std::runtime_error(fmt::format("needs {} pages, at most {} have an id", sizes.num_pages(),
                                         std::numeric_limits<std::int32_t>::max()));
  }
  std::vector<std::int32_t> pages(static_cast<std::size_t>(sizes.num_pages()));
  std::iota(pages.begin(), pages.end(), 0);
  Random(seed).shuffle(std::span(pages));
  const auto num_requests = static_cast<std::int64_t>(seq_lens.size());
  std::vector<std::int32_t> tables(
      static_cast<std::size_t>(sizes.num_sets * num_requests * sizes.table_stride), INT32_MAX);
  auto page = pages.begin();
  auto row = tables.begin();
  for (std::int64_t set = 0; set < sizes.num_sets; ++set) {
    for (const std::int32_t length : seq_lens) {
      const std::int64_t row_pages = ceil_div(length, page_size);
      std::copy_n(page, row_pages, row);
      page += row_pages;
      row += sizes.table_stride;
    }
  }
  return tables;
}

void KvPools::reserve(std::size_t pool_bytes) {
  if (pool_bytes <= reserved_bytes_) return;
  k_.reset();
  v_.reset();
  reserved_bytes_ = filled_bytes_ = 0;
  if (2 * pool_bytes > backend_.available_bytes()) {
    throw std::runtime_error(fmt::format("K and V: needs {} MiB of memory, {} MiB are available",
                                         2 * pool_bytes >> 20, backend_.available_bytes() >> 20));
  }
  k_ = backend_.allocate(pool_bytes);
  v_ = backend_.allocate(pool_bytes);
  reserved_bytes_ = pool_bytes;
}

void KvPools::fill(std::size_t pool_bytes, headrace_dtype dtype) {
  reserve(pool_bytes);
  if (dtype != dtype_) filled_bytes_ = 0;
  dtype_ = dtype;
  if (pool_bytes <= filled_bytes_) return;
  const std::size_t element_bytes = format_of(dtype).bytes();
  const auto begin = static_cast<std::int64_t>(filled_bytes_ / element_bytes);
  const auto end = static_cast<std::int64_t>(pool_bytes / element_bytes);
  backend_.fill_normal(k_.get(), begin, end, dtype, seed_);
  backend_.fill_normal(v_.get(), begin, end, dtype, seed_ + 1);
  filled_bytes_ = pool_bytes;
}

}  // namespace headrace::bench
