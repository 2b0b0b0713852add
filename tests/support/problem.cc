#include "tests/support/problem.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "tests/reference/dtypes.h"
#include "tests/support/random.h"

namespace headrace::tests {
namespace {

// Random values in their storage type. They are drawn from a table of 65536, because converting
// each of the millions a problem may have would take most of the time of the tests.
class Values {
 public:
  Values(headrace_dtype dtype, float deviation, Random& random)
      : dtype_(dtype), random_(random), codes_(1 << 16) {
    for (std::uint32_t& code : codes_) code = encode(dtype, deviation * random.normal());
  }

  void fill(std::span<std::byte> tensor, std::int64_t index, std::int32_t count) {
    const std::size_t bytes = dtype_bytes(dtype_);
    std::byte* target = &tensor[static_cast<std::size_t>(index) * bytes];
    std::uint64_t bits = 0;
    for (std::int32_t i = 0; i < count; ++i, target += bytes) {
      bits = i % 4 == 0 ? random_.next() : bits >> 16;
      store_code(target, bytes, codes_[bits & 0xffff]);
    }
  }

 private:
  headrace_dtype dtype_;
  Random& random_;
  std::vector<std::uint32_t> codes_;
};

std::int64_t pages_of(std::int64_t seq_len, std::int32_t page_size) {
  return (seq_len + page_size - 1) / page_size;
}

std::uint32_t poison_code(headrace_dtype dtype, Poison poison) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  if (poison == Poison::kZero) return 0;
  if (poison == Poison::kNan) return encode(dtype, kNan);
  if (dtype == HEADRACE_FLOAT8_E4M3) return encode(dtype, -kNan);
  return encode(dtype, std::numeric_limits<double>::infinity());
}

// A packed pool whose rows are `row_stride` apart.
PoolView packed_pool(const ProblemSpec& spec, std::int64_t row_stride) {
  if (spec.layout == HEADRACE_NHD) {
    const std::int64_t token_stride = row_stride * spec.num_kv_heads;
    return {0, 0, token_stride * spec.page_size, token_stride, row_stride};
  }
  const std::int64_t head_stride = row_stride * spec.page_size;
  return {0, 0, head_stride * spec.num_kv_heads, row_stride, head_stride};
}

// Places the pools, and returns how many elements each memory has. Strides and offsets are
// multiples of 16 elements, so that rows of every type may be read 16 bytes at a time.
std::array<std::int64_t, 2> place_pools(const ProblemSpec& spec, Problem& problem) {
  problem.k = problem.v = packed_pool(spec, spec.head_dim);
  problem.v.memory = 1;
  const std::int64_t packed_page = problem.k.page_stride;
  switch (spec.pools) {
    case Pools::kApart:
      break;
    case Pools::kInterleaved:
      problem.v.memory = 0;
      problem.v.offset = packed_page;
      problem.k.page_stride = problem.v.page_stride = 2 * packed_page;
      break;
    case Pools::kSliced:
      problem.k.offset = problem.v.offset = packed_page;
      problem.k.page_stride = problem.v.page_stride = 3 * packed_page;
      break;
    case Pools::kPadded:
      problem.k = packed_pool(spec, spec.head_dim + 16);
      problem.v = packed_pool(spec, spec.head_dim + 48);
      problem.v.memory = 1;
      problem.k.page_stride += 32;
      break;
  }
  if (spec.pools != Pools::kApart) {
    headrace_attention_desc& desc = problem.desc;
    desc.k_page_stride = problem.k.page_stride;
    desc.k_token_stride = problem.k.token_stride;
    desc.k_head_stride = problem.k.head_stride;
    desc.v_page_stride = problem.v.page_stride;
    desc.v_token_stride = problem.v.token_stride;
    desc.v_head_stride = problem.v.head_stride;
  }

  std::array<std::int64_t, 2> elements = {0, 0};
  for (const PoolView& pool : {problem.k, problem.v}) {
    const std::int64_t end = pool.offset + (problem.num_pages - 1) * pool.page_stride +
                             (spec.page_size - 1) * pool.token_stride +
                             (spec.num_kv_heads - 1) * pool.head_stride + spec.head_dim;
    elements[pool.memory] = std::max(elements[pool.memory], end);
  }
  return elements;
}

RowView packed_rows(std::size_t num_requests, std::int64_t num_heads, std::int64_t width) {
  const std::int64_t request_stride = num_heads * width;
  return {0, request_stride, width, static_cast<std::int64_t>(num_requests) * request_stride};
}

void place_rows(const ProblemSpec& spec, Problem& problem) {
  const std::int64_t heads = spec.num_qo_heads;
  const std::int64_t head_dim = spec.head_dim;
  const auto num_requests = static_cast<std::int64_t>(spec.seq_lens.size());
  problem.q_rows = problem.out_rows = packed_rows(spec.seq_lens.size(), heads, head_dim);
  problem.lse_rows = packed_rows(spec.seq_lens.size(), heads, 1);
  if (!spec.wide_rows) return;

  problem.q_rows = packed_rows(spec.seq_lens.size(), heads + 2 * spec.num_kv_heads, head_dim);
  problem.out_rows.offset = 32;
  problem.out_rows.head_stride = head_dim + 16;
  problem.out_rows.request_stride = heads * (head_dim + 16) + 64;
  problem.out_rows.num_elements = 32 + num_requests * problem.out_rows.request_stride;
  problem.lse_rows = {1, 2 * heads + 3, 2, 1 + num_requests * (2 * heads + 3)};
  headrace_attention_desc& desc = problem.desc;
  desc.q_request_stride = problem.q_rows.request_stride;
  desc.q_head_stride = problem.q_rows.head_stride;
  desc.out_request_stride = problem.out_rows.request_stride;
  desc.out_head_stride = problem.out_rows.head_stride;
  desc.lse_request_stride = problem.lse_rows.request_stride;
  desc.lse_head_stride = problem.lse_rows.head_stride;
}

// Gives every request its pages, at random places of a pool that has some more.
void assign_pages(const ProblemSpec& spec, Random& random, Problem& problem) {
  std::int64_t longest = 0;
  std::int64_t used = 0;
  for (const std::int32_t seq_len : spec.seq_lens) {
    const std::int64_t pages = pages_of(seq_len, spec.page_size);
    longest = std::max(longest, pages);
    used += pages;
  }
  const std::int64_t room = pages_of(spec.room, spec.page_size);
  longest = std::max(longest, room);
  used = std::max(used, room * static_cast<std::int64_t>(problem.num_requests()));
  constexpr std::int64_t kSparePages = 3;
  constexpr std::int64_t kSpareEntries = 2;
  problem.num_pages = used + kSparePages;
  problem.block_table_stride = longest + kSpareEntries;
  std::vector<std::int32_t> free_pages(static_cast<std::size_t>(problem.num_pages));
  std::iota(free_pages.begin(), free_pages.end(), 0);
  random.shuffle(free_pages);

  const std::int64_t num_shared =
      spec.seq_lens.empty()
          ? 0
          : std::min<std::int64_t>(spec.shared_pages, pages_of(spec.seq_lens[0], spec.page_size));
  problem.block_table.assign(
      problem.num_requests() * static_cast<std::size_t>(problem.block_table_stride),
      spec.unused_entry);
  for (std::size_t r = 0; r < problem.num_requests(); ++r) {
    std::int32_t* const row =
        &problem.block_table[r * static_cast<std::size_t>(problem.block_table_stride)];
    for (std::int64_t p = 0; p < pages_of(spec.seq_lens[r], spec.page_size); ++p) {
      if (r > 0 && p < num_shared) {
        row[p] = problem.block_table[static_cast<std::size_t>(p)];
      } else {
        row[p] = free_pages.back();
        free_pages.pop_back();
      }
    }
  }
}

void fill_caches(const ProblemSpec& spec, const std::array<std::int64_t, 2>& elements,
                 Random& random, Problem& problem) {
  const headrace_dtype dtype = spec.kv_dtype;
  for (std::size_t i = 0; i < 2; ++i) {
    problem.pools[i].resize(static_cast<std::size_t>(elements[i]) * dtype_bytes(dtype));
    fill_row(dtype, problem.pools[i], 0, elements[i], poison_code(dtype, spec.poison));
  }
  Values values(dtype, spec.kv_deviation, random);
  for (std::size_t r = 0; r < problem.num_requests(); ++r) {
    for (std::int64_t t = 0; t < spec.seq_lens[r]; ++t) {
      for (std::int32_t g = 0; g < spec.num_kv_heads; ++g) {
        for (const PoolView& pool : {problem.k, problem.v}) {
          values.fill(problem.pools[pool.memory], problem.cache_index(pool, r, t, g),
                      spec.head_dim);
        }
      }
    }
  }
}

void fill_q(const ProblemSpec& spec, Random& random, Problem& problem) {
  const std::int64_t elements = problem.q_rows.num_elements;
  problem.q.resize(static_cast<std::size_t>(elements) * dtype_bytes(spec.q_dtype));
  fill_row(spec.q_dtype, problem.q, 0, elements, poison_code(spec.q_dtype, spec.poison));
  Values values(spec.q_dtype, spec.q_deviation, random);
  for (std::size_t r = 0; r < problem.num_requests(); ++r) {
    for (std::int32_t h = 0; h < spec.num_qo_heads; ++h) {
      values.fill(problem.q, problem.q_rows.at(r, h), spec.head_dim);
    }
  }
}

}  // namespace

std::int64_t Problem::cache_index(const PoolView& pool, std::size_t request, std::int64_t token,
                                  std::int32_t kv_head) const {
  const std::int64_t page = block_table[request * static_cast<std::size_t>(block_table_stride) +
                                        static_cast<std::size_t>(token / desc.page_size)];
  return pool.offset + page * pool.page_stride + token % desc.page_size * pool.token_stride +
         kv_head * pool.head_stride;
}

void Problem::load_cache(const PoolView& pool, std::size_t request, std::int64_t token,
                         std::int32_t kv_head, std::span<float> row) const {
  load_row(desc.kv_dtype, pools[pool.memory], cache_index(pool, request, token, kv_head), row);
}

void Problem::store_cache(const PoolView& pool, std::size_t request, std::int64_t token,
                          std::int32_t kv_head, std::span<const float> row) {
  store_row(desc.kv_dtype, pools[pool.memory], cache_index(pool, request, token, kv_head), row);
}

void Problem::load_q(std::size_t request, std::int32_t head, std::span<float> row) const {
  load_row(desc.q_dtype, q, q_rows.at(request, head), row);
}

void Problem::store_q(std::size_t request, std::int32_t head, std::span<const float> row) {
  store_row(desc.q_dtype, q, q_rows.at(request, head), row);
}

Problem make_problem(const ProblemSpec& spec) {
  Random random(spec.seed);
  Problem problem;
  problem.desc = headrace_attention_desc_default();
  problem.desc.num_qo_heads = spec.num_qo_heads;
  problem.desc.num_kv_heads = spec.num_kv_heads;
  problem.desc.head_dim = spec.head_dim;
  problem.desc.page_size = spec.page_size;
  problem.desc.q_dtype = spec.q_dtype;
  problem.desc.kv_dtype = spec.kv_dtype;
  problem.desc.out_dtype = spec.out_dtype;
  problem.desc.layout = spec.layout;
  problem.desc.sm_scale = spec.sm_scale;
  problem.seq_lens = spec.seq_lens;
  if (spec.scales) {
    for (std::int32_t g = 0; g < spec.num_kv_heads; ++g) {
      problem.k_scale.push_back(static_cast<float>(0.25 + random.uniform()));
      problem.v_scale.push_back(static_cast<float>(2.0 + random.uniform()));
    }
  }
  assign_pages(spec, random, problem);
  const std::array<std::int64_t, 2> elements = place_pools(spec, problem);
  place_rows(spec, problem);
  fill_caches(spec, elements, random, problem);
  fill_q(spec, random, problem);
  return problem;
}

Problem select_requests(const Problem& problem, std::span<const std::size_t> requests) {
  Problem selected = problem;
  const std::int32_t heads = problem.desc.num_qo_heads;
  selected.q_rows = selected.out_rows = packed_rows(requests.size(), heads, problem.desc.head_dim);
  selected.lse_rows = packed_rows(requests.size(), heads, 1);
  selected.seq_lens.clear();
  selected.block_table.clear();
  selected.q.clear();
  const auto request_bytes =
      static_cast<std::size_t>(problem.q_rows.request_stride) * dtype_bytes(problem.desc.q_dtype);
  for (const std::size_t r : requests) {
    selected.seq_lens.push_back(problem.seq_lens[r]);
    const auto entries = static_cast<std::size_t>(problem.block_table_stride);
    const std::span row = std::span(problem.block_table).subspan(r * entries, entries);
    selected.block_table.insert(selected.block_table.end(), row.begin(), row.end());
    const std::span q = std::span(problem.q).subspan(r * request_bytes, request_bytes);
    selected.q.insert(selected.q.end(), q.begin(), q.end());
  }
  return selected;
}

}  // namespace headrace::tests
