// Plans written by hand: every way to split a request gives the same result.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "scheduler/work_item.h"
#include "tests/catch.h"
#include "tests/support/compare.h"
#include "tests/support/problem.h"
#include "tests/support/random.h"
#include "tests/support/run_plan.h"

namespace headrace::tests {
namespace {

using scheduler::kWholeShare;

// Ends of n shares that are equal but for rounding.
std::vector<std::uint32_t> even_shares(std::uint32_t n) {
  std::vector<std::uint32_t> ends;
  for (std::uint32_t i = 1; i <= n; ++i) ends.push_back(kWholeShare * i / n);
  return ends;
}

// Ends of n shares cut at random, some of them tiny.
std::vector<std::uint32_t> uneven_shares(std::uint32_t n, Random& random) {
  std::vector<std::uint32_t> ends = {kWholeShare};
  while (ends.size() < n) {
    const auto cut = static_cast<std::uint32_t>(random.between(1, kWholeShare - 1));
    if (std::ranges::find(ends, cut) == ends.end()) ends.push_back(cut);
  }
  std::ranges::sort(ends);
  return ends;
}

ProblemSpec split_spec() {
  ProblemSpec spec{.seq_lens = {1000, 37}};
  spec.head_dim = 64;
  spec.page_size = 48;  // neither divides the tiles nor is divided by them
  spec.out_dtype = HEADRACE_FLOAT32;
  spec.kv_dtype = HEADRACE_FLOAT8_E4M3;
  spec.scales = true;
  return spec;
}

TEST_CASE("decode: a request split 1, 2, 3, 7 and 64 times") {
  const Problem problem = make_problem(split_spec());
  const Expected expected = solve(problem);
  Random random(7);
  std::printf("splits: seed 7\n");
  // Boundaries on every token, within tiles and pages, and on tiles.
  for (const std::uint32_t tile_tokens : {1u, 40u, 64u}) {
    for (const std::uint32_t split_count : {1u, 2u, 3u, 7u, 64u}) {
      for (const bool even : {true, false}) {
        HandPlan plan = empty_plan(problem, tile_tokens);
        for (const std::size_t request : {0, 1}) {
          for (const std::int32_t kv_head : {0, 1}) {
            add_head(plan, request, kv_head,
                     even ? even_shares(split_count) : uneven_shares(split_count, random));
          }
        }
        const Result first = run_plan(problem, plan, 1, 1)[0];
        for (const std::uint32_t num_workers : {1u, 2u, 5u}) {
          CAPTURE(tile_tokens, split_count, even, num_workers);
          for (const Result& result : run_plan(problem, plan, num_workers, 3)) {
            CHECK(defect(problem, expected, result) == "");
            CHECK(result == first);  // same plan, same bits
          }
        }
      }
    }
  }
}

TEST_CASE("decode: some heads of a request split and others not") {
  ProblemSpec spec = split_spec();
  spec.num_qo_heads = 28;
  spec.num_kv_heads = 4;
  spec.kv_dtype = HEADRACE_BFLOAT16;
  const Problem problem = make_problem(spec);
  HandPlan plan = empty_plan(problem, 64);
  for (const std::size_t request : {0, 1}) {
    add_head(plan, request, 0, even_shares(3));
    add_head(plan, request, 1, even_shares(1));
    add_head(plan, request, 2, even_shares(5));
    add_head(plan, request, 3, even_shares(1));
  }
  std::ranges::reverse(plan.items);  // the order of the queue does not matter
  for (const std::uint32_t num_workers : {1u, 2u, 5u}) {
    CHECK(defect(problem, run_plan(problem, plan, num_workers, 1)[0]) == "");
  }
}

TEST_CASE("decode: items that cover several KV heads") {
  ProblemSpec spec = split_spec();
  spec.num_qo_heads = 12;
  spec.num_kv_heads = 4;
  for (const headrace_layout layout : {HEADRACE_NHD, HEADRACE_HND}) {
    spec.layout = layout;
    const Problem problem = make_problem(spec);
    const Expected expected = solve(problem);
    for (const std::int32_t kv_heads_per_item : {1, 2, 4}) {
      for (const std::uint32_t split_count : {1u, 3u}) {
        CAPTURE(layout, kv_heads_per_item, split_count);
        HandPlan plan = empty_plan(problem, 64, kv_heads_per_item);
        for (const std::size_t request : {0, 1}) {
          for (std::int32_t item = 0; item < 4 / kv_heads_per_item; ++item) {
            add_head(plan, request, item, even_shares(split_count));
          }
        }
        for (const Result& result : run_plan(problem, plan, 2, 2)) {
          CHECK(defect(problem, expected, result) == "");
        }
      }
    }
  }
}

TEST_CASE("decode: LSE wanted or not, split or not") {
  const Problem problem = make_problem(split_spec());
  const Expected expected = solve(problem);
  for (const std::uint32_t split_count : {1u, 4u}) {
    HandPlan plan = empty_plan(problem, 64);
    for (const std::size_t request : {0, 1}) {
      for (const std::int32_t kv_head : {0, 1}) {
        add_head(plan, request, kv_head, even_shares(split_count));
      }
    }
    const Result with_lse = run_plan(problem, plan, 2, 1, true)[0];
    const Result without = run_plan(problem, plan, 2, 1, false)[0];
    CHECK(defect(problem, expected, with_lse) == "");
    CHECK(defect(problem, expected, without) == "");
    CHECK(with_lse.lse.size() == 2 * 8 * sizeof(float));
    CHECK(without.lse.empty());
    CHECK(without.out == with_lse.out);
  }
}

TEST_CASE("decode: one hand-written plan serves any lengths") {
  ProblemSpec spec = split_spec();
  for (const std::int32_t length : {0, 1, 63, 64, 65, 128, 129, 2000}) {
    CAPTURE(length);
    spec.seq_lens = {length, 2000 - length};
    const Problem problem = make_problem(spec);
    HandPlan plan = empty_plan(problem, 64);
    for (const std::size_t request : {0, 1}) {
      for (const std::int32_t kv_head : {0, 1}) add_head(plan, request, kv_head, even_shares(7));
    }
    CHECK(defect(problem, run_plan(problem, plan, 2, 1)[0]) == "");
  }
}

}  // namespace
}  // namespace headrace::tests
