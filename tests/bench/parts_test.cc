// The benchmark's own parts: KV sets, page tables, the sample that is checked, errors, size
// classes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "bench/check.h"
#include "bench/kv_sets.h"
#include "bench/table.h"
#include "tests/catch.h"

namespace headrace::bench {
namespace {

constexpr PoolShape kShape{.num_kv_heads = 2,
                           .head_dim = 64,
                           .page_size = 16,
                           .dtype = HEADRACE_BFLOAT16,
                           .layout = HEADRACE_NHD};
constexpr std::size_t kPageBytes = 2 * 64 * 16 * 2;  // of K

TEST_CASE("sets are so many that between two runs on one the cold bytes are read") {
  const std::vector<std::int32_t> seq_lens{17, 0, 16};  // 3 pages
  const SetSizes sizes = set_sizes(kShape, seq_lens, 100 * kPageBytes);
  CHECK(sizes.set_pages == 3);
  CHECK(sizes.table_stride == 2);
  CHECK(sizes.page_bytes == kPageBytes);
  CHECK(sizes.set_bytes() == 6 * kPageBytes);
  CHECK(sizes.num_sets == 18);  // 17 others are 102 pages of K and V
  CHECK(sizes.pool_bytes() == 18 * 3 * kPageBytes);
}

TEST_CASE("a large set is alone, a tiny one does not have endless company") {
  const std::vector<std::int32_t> seq_lens{16 * 40};  // 80 pages of K and V
  CHECK(set_sizes(kShape, seq_lens, 2 * kPageBytes).num_sets == 1);
  CHECK(set_sizes(kShape, seq_lens, 3 * kPageBytes).num_sets == 2);
  CHECK(set_sizes(kShape, seq_lens, std::size_t{1} << 40).num_sets == 1024);
}

TEST_CASE("requests without tokens have a pool, too") {
  const std::vector<std::int32_t> seq_lens{0, 0};
  const SetSizes sizes = set_sizes(kShape, seq_lens, 0);
  CHECK(sizes.num_pages() == 1);
  CHECK(random_tables(sizes, 16, seq_lens, 1) == std::vector<std::int32_t>{INT32_MAX, INT32_MAX});
}

TEST_CASE("tables list every page once, in an order that the seed names") {
  const std::vector<std::int32_t> seq_lens{100, 1, 0, 33};
  const SetSizes sizes = set_sizes(kShape, seq_lens, 200 * kPageBytes);
  const std::vector<std::int32_t> tables = random_tables(sizes, 16, seq_lens, 1);
  CHECK(tables == random_tables(sizes, 16, seq_lens, 1));
  CHECK(tables != random_tables(sizes, 16, seq_lens, 2));

  std::vector<std::int32_t> pages;
  for (std::int64_t set = 0; set < sizes.num_sets; ++set) {
    for (std::size_t request = 0; request < seq_lens.size(); ++request) {
      for (std::int64_t i = 0; i < sizes.table_stride; ++i) {
        const auto row = set * 4 + static_cast<std::int64_t>(request);
        const std::int32_t page = tables[static_cast<std::size_t>(row * sizes.table_stride + i)];
        if (i * 16 < seq_lens[request]) {
          pages.push_back(page);
        } else {
          CHECK(page == INT32_MAX);
        }
      }
    }
  }
  CHECK_FALSE(std::is_sorted(pages.begin(), pages.end()));
  std::sort(pages.begin(), pages.end());
  std::vector<std::int32_t> all(static_cast<std::size_t>(sizes.num_pages()));
  std::iota(all.begin(), all.end(), 0);
  CHECK(pages == all);
}

TEST_CASE("all rows are checked where they are few") {
  const std::vector<std::int32_t> seq_lens{5, 3};
  CHECK(sample_rows(seq_lens, 2, 16, 1) ==
        std::vector<RequestHead>{{0, 0}, {0, 1}, {1, 0}, {1, 1}});
}

TEST_CASE("a sample has the longest and the shortest request and keeps to its size") {
  std::vector<std::int32_t> seq_lens(50, 100);
  seq_lens[17] = 5000;
  seq_lens[40] = 1;
  const std::vector<RequestHead> rows = sample_rows(seq_lens, 8, 6000, 1);
  CHECK(rows == sample_rows(seq_lens, 8, 6000, 1));
  CHECK(rows != sample_rows(seq_lens, 8, 6000, 2));
  const auto has = [&](std::int32_t request) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const RequestHead& row) { return row.request == request; });
  };
  CHECK(has(17));
  CHECK(has(40));
  std::int64_t tokens = 0;
  for (const RequestHead& row : rows) tokens += seq_lens[static_cast<std::size_t>(row.request)];
  CHECK(tokens > 5900);
  CHECK(tokens <= 6000);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(std::count(rows.begin(), rows.end(), rows[i]) == 1);
  }
  CHECK(sample_rows(seq_lens, 8, 10, 1).size() == 2);  // these two always
}

TEST_CASE("errors are relative to the reference") {
  const std::vector<double> expected{3, -4};
  const Error error = compare(std::vector<double>{3.003, -4.004}, expected);
  CHECK(std::abs(error.rms_pct - 0.1) < 1e-9);
  CHECK(std::abs(error.max_pct - 0.1) < 1e-9);
  CHECK(error.is_small());
  CHECK_FALSE(compare(std::vector<double>{3.03, -4}, expected).is_small());
}

TEST_CASE("NaN is never right, and only zero where zero is") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_FALSE(compare(std::vector<double>{nan, -4}, std::vector<double>{3, -4}).is_small());
  CHECK_FALSE(compare(std::vector<double>{3, nan}, std::vector<double>{3, -4}).is_small());
  CHECK_FALSE(compare(std::vector<double>{1e-9}, std::vector<double>{0}).is_small());
  CHECK(compare(std::vector<double>{0}, std::vector<double>{0}).is_small());
}

TEST_CASE("size classes begin at their smaller end") {
  CHECK(size_class(2'000'000'000) == "2 GB and more");
  CHECK(size_class(1'999'999'999) == "1 to 2 GB");
  CHECK(size_class(512'000'000) == "512 MB to 1 GB");
  CHECK(size_class(511'999'999) == "256 to 512 MB");
  CHECK(size_class(64'000'000) == "64 to 256 MB");
  CHECK(size_class(0) == "below 64 MB");
}

}  // namespace
}  // namespace headrace::bench
