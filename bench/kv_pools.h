// K and V pools full of random values, and the page tables of several KV sets over them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bench/device.h"
#include "bench/random.h"
#include "headrace/headrace.h"

namespace headrace::bench {

// What lies where in a pool; strides and offsets in elements.
struct PoolShape {
  std::int32_t num_kv_heads;
  std::int32_t head_dim;
  std::int32_t page_size;  // tokens
  headrace_dtype dtype;
  headrace_layout layout;

  std::int64_t page_elements() const { return std::int64_t{page_size} * num_kv_heads * head_dim; }
  std::int64_t offset(std::int64_t page, std::int64_t token, std::int64_t head) const {
    const std::int64_t row =
        layout == HEADRACE_NHD ? token * num_kv_heads + head : head * page_size + token;
    return page * page_elements() + row * head_dim;
  }
};

// Every set is one batch of requests with its own pages, so that running the sets in turn finds no
// set in a cache. The pages of all sets are in one random order.
class KvPools {
 public:
  // As many sets as it takes to reach working_set_bytes of K and V, at least one.
  KvPools(const Device& device, const PoolShape& shape, std::span<const std::int32_t> seq_lens,
          std::size_t working_set_bytes, Random& random);

  const PoolShape& shape() const { return shape_; }
  std::int64_t num_sets() const { return num_sets_; }
  std::int64_t num_pages() const { return num_pages_; }
  const std::byte* k() const { return k_.get(); }
  const std::byte* v() const { return v_.get(); }

  // block_table [num_requests, table_stride] of a set; -1 past a request's end.
  const std::int32_t* block_table(std::int64_t set) const {
    return tables_.data() + set * num_requests_ * table_stride_;
  }
  std::int64_t table_stride() const { return table_stride_; }

 private:
  Memory random_pool(const Device& device, Random& random) const;

  PoolShape shape_;
  std::int64_t num_requests_;
  std::int64_t table_stride_ = 1;
  std::int64_t num_sets_ = 1;
  std::int64_t num_pages_ = 1;  // in each pool
  Memory k_;
  Memory v_;
  std::vector<std::int32_t> tables_;  // [num_sets, num_requests, table_stride]
};

}  // namespace headrace::bench
