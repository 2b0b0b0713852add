// Memory that must not count: NaN, then infinity, in every cache element that no valid token
// occupies, garbage past the end of every table row; and memory that must not be touched.
#include <limits>
#include <vector>

#include "tests/catch.h"
#include "tests/support/compare.h"
#include "tests/support/problem.h"
#include "tests/support/run_problem.h"

namespace headrace::tests {
namespace {

// Around page ends (16) and around the ends of tiles of 32, 64 and 128 tokens.
const std::vector<std::int32_t> kEdgeLens = {0,  1,  15, 16, 17,  31,  32,
                                             33, 63, 64, 65, 127, 128, 129};

constexpr headrace_dtype kCacheDtypes[] = {HEADRACE_BFLOAT16, HEADRACE_FLOAT16, HEADRACE_FLOAT32,
                                           HEADRACE_FLOAT8_E4M3};

TEST_CASE("decode: poison around valid tokens gives the bits of zeros there") {
  for (const headrace_dtype dtype : kCacheDtypes) {
    for (const Pools pools : {Pools::kApart, Pools::kInterleaved, Pools::kPadded}) {
      for (const headrace_layout layout : {HEADRACE_NHD, HEADRACE_HND}) {
        CAPTURE(dtype, static_cast<int>(pools), layout);
        ProblemSpec spec{.seq_lens = kEdgeLens};
        set_cache_dtype(spec, dtype);
        if (!supported(spec)) continue;
        spec.pools = pools;
        spec.layout = layout;
        spec.poison = Poison::kZero;
        spec.unused_entry = 0;
        const Problem clean = make_problem(spec);
        const Result right = run_problem(clean);
        CHECK(defect(clean, right) == "");

        spec.poison = Poison::kNan;
        spec.unused_entry = INT_MAX;
        CHECK(run_problem(make_problem(spec)) == right);
        spec.poison = Poison::kInfinity;
        spec.unused_entry = -1;
        CHECK(run_problem(make_problem(spec)) == right);
      }
    }
  }
}

TEST_CASE("decode: a request of few tokens in a page of many") {
  for (const headrace_dtype dtype : kCacheDtypes) {
    for (const Poison poison : {Poison::kNan, Poison::kInfinity}) {
      CAPTURE(dtype, static_cast<int>(poison));
      ProblemSpec spec{.seq_lens = {1, 2, 255, 0, 256, 257}};
      spec.page_size = 256;
      set_cache_dtype(spec, dtype);
      if (!supported(spec)) continue;
      spec.poison = poison;
      const Problem problem = make_problem(spec);
      CHECK(defect(problem, run_problem(problem)) == "");
    }
  }
}

// Allocations of exactly the size asked for: a memory checker finds what guard zones do not, reads.
TEST_CASE("decode: every buffer of exactly its size") {
  for (const Pools pools : {Pools::kApart, Pools::kInterleaved, Pools::kSliced, Pools::kPadded}) {
    for (const headrace_dtype dtype : kCacheDtypes) {
      for (const std::int32_t head_dim : {64, 80, 128}) {
        CAPTURE(static_cast<int>(pools), dtype, head_dim);
        ProblemSpec spec{.seq_lens = {17, 300, 1}};
        spec.pools = pools;
        set_cache_dtype(spec, dtype);
        spec.head_dim = head_dim;
        if (!supported(spec)) continue;
        spec.scales = true;
        const Problem problem = make_problem(spec);
        RunOptions options;
        options.guards = Guards::kNone;
        CHECK(defect(problem, run_problem(problem, options)) == "");
      }
    }
  }
}

TEST_CASE("decode: a NaN in a valid token shows, in the heads that see it") {
  for (const headrace_dtype dtype : kCacheDtypes) {
    CAPTURE(dtype);
    ProblemSpec spec{.seq_lens = {100, 100}};
    set_cache_dtype(spec, dtype);
    if (!supported(spec)) continue;
    Problem problem = make_problem(spec);
    const std::vector<float> row(128, std::numeric_limits<float>::quiet_NaN());
    problem.store_cache(problem.k, 0, 70, 1, row);
    CHECK(defect(problem, run_problem(problem)) == "");
  }
}

}  // namespace
}  // namespace headrace::tests
