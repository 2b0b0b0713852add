// Every wrong argument of a run, one at a time, and validation mode: status, message, nothing
// written.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/api/expect_error.h"
#include "tests/api/uniform_problem.h"
#include "tests/catch.h"

using namespace headrace;
using namespace headrace::tests;

namespace {

using Args = headrace_run_args;

template <typename T>
const T* shifted(const T* pointer, int bytes) {
  return reinterpret_cast<const T*>(reinterpret_cast<const char*>(pointer) + bytes);
}

struct Wrong {
  const char* what;
  std::function<void(Args&)> spoil;
  headrace_status status;
  std::vector<std::string> message;
};

// The problem has three requests of 5, 9 and 3 tokens in pages of 4, and 7 pages.
const std::vector<Wrong> kWrong = {
    {"struct_size",
     [](Args& a) { a.struct_size = 0; },
     HEADRACE_INVALID_ARGUMENT,
     {"args.struct_size is 0", "needed: 144"}},
    {"negative batch",
     [](Args& a) { a.num_requests = -1; },
     HEADRACE_INVALID_ARGUMENT,
     {"args.num_requests is -1", "needed: 0 to"}},
    {"more requests than planned",
     [](Args& a) { a.num_requests = 4; },
     HEADRACE_OUT_OF_CAPACITY,
     {"args.num_requests is 4", "at most 3"}},
    {"validate 2",
     [](Args& a) { a.validate = 2; },
     HEADRACE_INVALID_ARGUMENT,
     {"args.validate is 2", "0 to 1"}},
    {"dependent launch 2",
     [](Args& a) { a.dependent_launch = 2; },
     HEADRACE_INVALID_ARGUMENT,
     {"args.dependent_launch is 2", "0 to 1"}},
    {"fresh tokens -2",
     [](Args& a) { a.fresh_tokens = -2; },
     HEADRACE_INVALID_ARGUMENT,
     {"args.fresh_tokens is -2", "-1 to"}},
    {"timeline misaligned",
     [](Args& a) { a.timeline = reinterpret_cast<headrace_timeline_record*>(4); },
     HEADRACE_INVALID_ARGUMENT,
     {"args.timeline is 0x4", "multiple of 8"}},
    {"q null", [](Args& a) { a.q = nullptr; }, HEADRACE_INVALID_ARGUMENT, {"args.q is null"}},
    {"q misaligned",
     [](Args& a) { a.q = static_cast<const char*>(a.q) + 2; },
     HEADRACE_INVALID_ARGUMENT,
     {"args.q is 0x", "multiple of 4"}},
    {"K null",
     [](Args& a) { a.k_cache = nullptr; },
     HEADRACE_INVALID_ARGUMENT,
     {"args.k_cache is null"}},
    {"K misaligned",
     [](Args& a) { a.k_cache = static_cast<const char*>(a.k_cache) + 1; },
     HEADRACE_INVALID_ARGUMENT,
     {"args.k_cache is 0x", "multiple of 4"}},
    {"V null",
     [](Args& a) { a.v_cache = nullptr; },
     HEADRACE_INVALID_ARGUMENT,
     {"args.v_cache is null"}},
    {"V misaligned",
     [](Args& a) { a.v_cache = static_cast<const char*>(a.v_cache) + 3; },
     HEADRACE_INVALID_ARGUMENT,
     {"args.v_cache is 0x", "multiple of 4"}},
    {"no pages",
     [](Args& a) { a.num_pages = 0; },
     HEADRACE_INVALID_ARGUMENT,
     {"args.num_pages is 0", "needed: 1 to"}},
    {"negative pages",
     [](Args& a) { a.num_pages = -7; },
     HEADRACE_INVALID_ARGUMENT,
     {"args.num_pages is -7", "needed: 1 to"}},
    {"more pages than ids",
     [](Args& a) { a.num_pages = (1ll << 31) + 1; },
     HEADRACE_INVALID_ARGUMENT,
     {"args.num_pages is 2147483649", "1 to 2147483648"}},
    {"block table null",
     [](Args& a) { a.block_table = nullptr; },
     HEADRACE_INVALID_ARGUMENT,
     {"args.block_table is null"}},
    {"block table misaligned",
     [](Args& a) { a.block_table = shifted(a.block_table, 2); },
     HEADRACE_INVALID_ARGUMENT,
     {"args.block_table is 0x", "multiple of 4"}},
    {"row stride 0",
     [](Args& a) { a.block_table_stride = 0; },
     HEADRACE_INVALID_ARGUMENT,
     {"args.block_table_stride is 0", "needed: 1 to"}},
    {"negative row stride",
     [](Args& a) { a.block_table_stride = -4; },
     HEADRACE_INVALID_ARGUMENT,
     {"args.block_table_stride is -4", "needed: 1 to"}},
    {"lengths null",
     [](Args& a) { a.seq_lens = nullptr; },
     HEADRACE_INVALID_ARGUMENT,
     {"args.seq_lens is null"}},
    {"lengths misaligned",
     [](Args& a) { a.seq_lens = shifted(a.seq_lens, 1); },
     HEADRACE_INVALID_ARGUMENT,
     {"args.seq_lens is 0x", "multiple of 4"}},
    {"K scale misaligned",
     [](Args& a) { a.k_scale = shifted(static_cast<const float*>(a.q), 2); },
     HEADRACE_INVALID_ARGUMENT,
     {"args.k_scale is 0x", "multiple of 4"}},
    {"V scale misaligned",
     [](Args& a) { a.v_scale = shifted(static_cast<const float*>(a.q), 2); },
     HEADRACE_INVALID_ARGUMENT,
     {"args.v_scale is 0x", "multiple of 4"}},
    {"out null", [](Args& a) { a.out = nullptr; }, HEADRACE_INVALID_ARGUMENT, {"args.out is null"}},
    {"out misaligned",
     [](Args& a) { a.out = static_cast<char*>(a.out) + 2; },
     HEADRACE_INVALID_ARGUMENT,
     {"args.out is 0x", "multiple of 4"}},
    {"LSE misaligned",
     [](Args& a) { a.lse = const_cast<float*>(shifted(a.lse, 2)); },
     HEADRACE_INVALID_ARGUMENT,
     {"args.lse is 0x", "multiple of 4"}},
    {"workspace null",
     [](Args& a) { a.workspace = nullptr; },
     HEADRACE_INVALID_ARGUMENT,
     {"args.workspace is null"}},
    {"workspace misaligned",
     [](Args& a) { a.workspace = static_cast<char*>(a.workspace) + 64; },
     HEADRACE_INVALID_ARGUMENT,
     {"args.workspace is 0x", "multiple of 128"}},
};

// A plan with a run's arguments, and the bytes that a refused run must leave alone.
struct Bench {
  Context context{HEADRACE_DEVICE_CPU, 2};
  UniformProblem problem{{5, 9, 3}};
  PreparedPlan prepared{context, problem};

  std::vector<std::vector<std::byte>> bytes() const {
    return {problem.out.memory(), problem.lse.memory(), prepared.workspace.memory(),
            prepared.buffer.memory()};
  }

  void refuse(const Args& args, headrace_status status, const std::vector<std::string>& message) {
    const auto before = bytes();
    expect_error(headrace_run(prepared.plan.get(), &args), status, message);
    CHECK(bytes() == before);
  }

  // After any refusal the plan still works.
  void run_well() {
    problem.clear_results();
    prepared.plan.run(prepared.args(problem));
    CHECK(problem.results_right());
  }
};

}  // namespace

TEST_CASE("wrong run arguments are refused, and nothing is written") {
  Bench bench;
  for (const Wrong& wrong : kWrong) {
    INFO("wrong: " << wrong.what);
    headrace_run_args args = bench.prepared.args(bench.problem);
    wrong.spoil(args);
    bench.refuse(args, wrong.status, wrong.message);
  }
  bench.run_well();
}

TEST_CASE("a workspace one byte short is refused with the bytes needed and given") {
  Bench bench;
  const std::size_t needed = bench.prepared.sizes.workspace_bytes;
  headrace_run_args args = bench.prepared.args(bench.problem);
  args.workspace_bytes = needed - 1;
  bench.refuse(args, HEADRACE_BUFFER_TOO_SMALL,
               {"args.workspace_bytes is " + std::to_string(needed - 1),
                "at least " + std::to_string(needed)});
}

TEST_CASE("null handles of a run") {
  Bench bench;
  const headrace_run_args args = bench.prepared.args(bench.problem);
  expect_error(headrace_run(nullptr, &args), HEADRACE_INVALID_ARGUMENT, {"plan is null"});
  expect_error(headrace_run(bench.prepared.plan.get(), nullptr), HEADRACE_INVALID_ARGUMENT,
               {"args is null"});
}

TEST_CASE("a run of no requests does nothing and needs no pointers") {
  Bench bench;
  const auto before = bench.bytes();
  CHECK_NOTHROW(bench.prepared.plan.run(run_args()));
  CHECK(bench.bytes() == before);
}

TEST_CASE("validation names the first bad entry") {
  Bench bench;
  UniformProblem& problem = bench.problem;
  headrace_run_args args = bench.prepared.args(problem);
  args.validate = 1;
  REQUIRE(problem.num_pages == 7);
  REQUIRE(problem.block_table_stride == 4);

  SECTION("all is well, poison in the unused entries included") {
    bench.prepared.plan.run(args);
    CHECK(problem.results_right());
  }
  SECTION("negative length") {
    problem.seq_lens[1] = -1;
    bench.refuse(args, HEADRACE_INVALID_DATA, {"seq_lens[1] is -1", "0 or more"});
  }
  SECTION("length above the table's row") {
    problem.seq_lens[2] = 17;
    bench.refuse(args, HEADRACE_INVALID_DATA,
                 {"seq_lens[2] is 17", "5 pages of 4 tokens", "4 entries"});
  }
  SECTION("the largest length") {
    problem.seq_lens[0] = INT32_MAX;
    bench.refuse(args, HEADRACE_INVALID_DATA,
                 {"seq_lens[0] is 2147483647", "536870912 pages", "4 entries"});
  }
  SECTION("page past the pool") {
    problem.block_table[4 + 2] = 7;
    bench.refuse(args, HEADRACE_INVALID_DATA,
                 {"block_table[1][2] is 7; the pool has 7 pages (ids 0 to 6)"});
  }
  SECTION("negative page") {
    problem.block_table[8] = -1;
    bench.refuse(args, HEADRACE_INVALID_DATA,
                 {"block_table[2][0] is -1; the pool has 7 pages (ids 0 to 6)"});
  }
  SECTION("the first of several") {
    problem.block_table[8] = -1;
    problem.block_table[1] = 100;
    problem.seq_lens[2] = -5;
    bench.refuse(args, HEADRACE_INVALID_DATA, {"block_table[0][1] is 100"});
  }
  SECTION("rows past the batch are not looked at") {
    problem.seq_lens[2] = -5;
    args.num_requests = 2;
    bench.prepared.plan.run(args);
    CHECK(problem.out.as<float>()[0] == 2.0f);  // the mean of 0 to 4
  }
}
