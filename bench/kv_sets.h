// K and V pools full of random values, and the page tables of several KV sets over them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bench/backend.h"
#include "headrace/headrace.h"

namespace headrace::bench {

struct PoolShape {
  std::int32_t num_kv_heads;
  std::int32_t head_dim;
  std::int32_t page_size;  // tokens
  headrace_dtype dtype;
  headrace_layout layout;

  std::size_t token_bytes() const;  // of K, as many of V
};

// Every set is one batch of requests with its own pages, so that running the sets in turn finds no
// set in a cache.
struct SetSizes {
  std::int64_t num_sets;
  std::int64_t set_pages;     // in each pool
  std::int64_t table_stride;  // entries per request
  std::size_t page_bytes;     // of K, as many of V

  std::int64_t num_pages() const { return num_sets * set_pages; }
  std::size_t pool_bytes() const { return static_cast<std::size_t>(num_pages()) * page_bytes; }
  // K and V of one set, in whole pages.
  std::size_t set_bytes() const { return 2 * static_cast<std::size_t>(set_pages) * page_bytes; }
};

// As many sets as it takes to read cold_bytes of other sets between two runs on one; a single one
// where that is so large that what a cache keeps of it does not count.
SetSizes set_sizes(const PoolShape& shape, std::span<const std::int32_t> seq_lens,
                   std::size_t cold_bytes);

// [num_sets, num_requests, table_stride]: the pages of all sets in one random order; an invalid id
// past a request's end.
std::vector<std::int32_t> random_tables(const SetSizes& sizes, std::int32_t page_size,
                                        std::span<const std::int32_t> seq_lens, std::uint64_t seed);

// Memory that all problems use in turn, since filling it takes longer than measuring.
class KvPools {
 public:
  KvPools(const Backend& backend, std::uint64_t seed) : backend_(backend), seed_(seed) {}

  // Room for pool_bytes in each pool. Throws as Backend::allocate().
  void reserve(std::size_t pool_bytes);
  // Makes at least pool_bytes of each pool random values of this type.
  void fill(std::size_t pool_bytes, headrace_dtype dtype);

  const std::byte* k() const { return k_.get(); }
  const std::byte* v() const { return v_.get(); }

 private:
  const Backend& backend_;
  std::uint64_t seed_;
  Memory k_;
  Memory v_;
  std::size_t reserved_bytes_ = 0;
  std::size_t filled_bytes_ = 0;
  headrace_dtype dtype_ = HEADRACE_BFLOAT16;
};

}  // namespace headrace::bench
