// A decode attention problem on the host, poisoned: every cache element that no valid token
// occupies, every gap of q, every unused table entry is something that must not count.
#pragma once

#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/headrace.h"

namespace headrace::tests {

// How the pools of K and V lie in memory.
enum class Pools {
  kApart,        // two packed pools
  kInterleaved,  // [num_pages, 2, ...]
  kSliced,       // slices of larger pools: pages further apart, not at the start
  kPadded,       // heads, tokens and pages further apart, differently for K and V
};

enum class Poison { kNan, kInfinity, kZero };

struct ProblemSpec {
  std::vector<std::int32_t> seq_lens;
  std::int32_t num_qo_heads = 8;
  std::int32_t num_kv_heads = 2;
  std::int32_t head_dim = 128;
  std::int32_t page_size = 16;
  headrace_dtype q_dtype = HEADRACE_BFLOAT16;
  headrace_dtype kv_dtype = HEADRACE_BFLOAT16;
  headrace_dtype out_dtype = HEADRACE_BFLOAT16;
  headrace_layout layout = HEADRACE_NHD;
  float sm_scale = 0.08838834764831845f;
  Pools pools = Pools::kApart;
  // q is cut out of a packed [requests, q heads + k heads + v heads, head_dim] tensor; out and lse
  // go into larger buffers.
  bool wide_rows = false;
  bool scales = false;            // k_scale and v_scale, different for every head
  std::int32_t room = 0;          // tokens of every request that pools and table have room for
  std::int32_t shared_pages = 0;  // the first pages of all requests are those of request 0
  float q_deviation = 1.0f;
  float kv_deviation = 1.0f;
  Poison poison = Poison::kNan;         // fp8 has no infinity: NaN with the sign set instead
  std::int32_t unused_entry = INT_MAX;  // table entries at or past ceil(seq_len / page_size)
  std::uint64_t seed = 1;
};

// Element (page, token, head, d) lies at offset + page * page_stride + token * token_stride +
// head * head_stride + d of pools[memory].
struct PoolView {
  std::size_t memory;
  std::int64_t offset;
  std::int64_t page_stride;
  std::int64_t token_stride;
  std::int64_t head_stride;
};

// Element (request, head, d) lies at offset + request * request_stride + head * head_stride + d of
// a tensor of num_elements.
struct RowView {
  std::int64_t offset;
  std::int64_t request_stride;
  std::int64_t head_stride;
  std::int64_t num_elements;

  std::int64_t at(std::size_t request, std::int32_t head) const {
    return offset + static_cast<std::int64_t>(request) * request_stride + head * head_stride;
  }
};

struct Problem {
  headrace_attention_desc desc;  // strides are 0 where the tensor is packed
  PoolView k;
  PoolView v;
  RowView q_rows;
  RowView out_rows;
  RowView lse_rows;

  std::vector<std::int32_t> seq_lens;
  std::int64_t num_pages;
  std::int64_t block_table_stride;        // entries per row
  std::vector<std::int32_t> block_table;  // [requests, block_table_stride]
  std::vector<float> k_scale;             // [num_kv_heads] or empty
  std::vector<float> v_scale;             // [num_kv_heads] or empty
  std::vector<std::byte> q;
  std::array<std::vector<std::byte>, 2> pools;  // the second is empty when they are interleaved

  std::size_t num_requests() const { return seq_lens.size(); }
  std::int32_t group() const { return desc.num_qo_heads / desc.num_kv_heads; }

  // Element index of a token's row in pools[pool.memory]. The token must be valid.
  std::int64_t cache_index(const PoolView& pool, std::size_t request, std::int64_t token,
                           std::int32_t kv_head) const;
  // Reads or overwrites a row [head_dim].
  void load_cache(const PoolView& pool, std::size_t request, std::int64_t token,
                  std::int32_t kv_head, std::span<float> row) const;
  void store_cache(const PoolView& pool, std::size_t request, std::int64_t token,
                   std::int32_t kv_head, std::span<const float> row);
  void load_q(std::size_t request, std::int32_t head, std::span<float> row) const;
  void store_q(std::size_t request, std::int32_t head, std::span<const float> row);
};

Problem make_problem(const ProblemSpec& spec);

// The problem of some of the requests, in the order given, on the same pools. q must be packed.
Problem select_requests(const Problem& problem, std::span<const std::size_t> requests);

}  // namespace headrace::tests
