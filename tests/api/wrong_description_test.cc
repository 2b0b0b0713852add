// Every wrong description and plan option, one at a time: status, message, nothing written.
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/api/expect_error.h"
#include "tests/api/raw_enums.h"
#include "tests/api/uniform_problem.h"
#include "tests/catch.h"

using namespace headrace;
using namespace headrace::tests;

namespace {

struct Wrong {
  const char* what;
  std::function<void(headrace_attention_desc&, headrace_plan_options&)> spoil;
  headrace_status status;
  std::vector<std::string> message;
};

using Desc = headrace_attention_desc;
using Options = headrace_plan_options;

// The description spoiled has 4 query heads, 2 KV heads, head dim 64, page size 4, NHD.
const std::vector<Wrong> kWrong = {
    {"desc.struct_size",
     [](Desc& d, Options&) { d.struct_size -= 8; },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.struct_size is 136", "needed: 144"}},
    {"no query heads",
     [](Desc& d, Options&) { d.num_qo_heads = 0; },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.num_qo_heads is 0", "needed: 1 to"}},
    {"negative query heads",
     [](Desc& d, Options&) { d.num_qo_heads = -4; },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.num_qo_heads is -4", "needed: 1 to"}},
    {"no KV heads",
     [](Desc& d, Options&) { d.num_kv_heads = 0; },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.num_kv_heads is 0", "needed: 1 to 65536"}},
    {"too many KV heads",
     [](Desc& d, Options&) { d.num_kv_heads = 65537; },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.num_kv_heads is 65537", "needed: 1 to 65536"}},
    {"head counts that do not divide",
     [](Desc& d, Options&) { d.num_qo_heads = 5; },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.num_qo_heads is 5", "multiple of", "which is 2"}},
    {"fewer query heads than KV heads",
     [](Desc& d, Options&) { d.num_qo_heads = 1; },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.num_qo_heads is 1", "multiple of", "which is 2"}},
    {"a group of 65",
     [](Desc& d, Options&) { d.num_qo_heads = 130; },
     HEADRACE_UNSUPPORTED,
     {"130 / 2 = 65", "at most 64"}},
    {"head dim 100",
     [](Desc& d, Options&) { d.head_dim = 100; },
     HEADRACE_UNSUPPORTED,
     {"desc.head_dim is 100", "64, 80, 96, 128, 192 or 256"}},
    {"head dim 0",
     [](Desc& d, Options&) { d.head_dim = 0; },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.head_dim is 0", "64, 80, 96, 128, 192 or 256"}},
    {"page size 0",
     [](Desc& d, Options&) { d.page_size = 0; },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.page_size is 0", "needed: 1 to 1048576"}},
    {"negative page size",
     [](Desc& d, Options&) { d.page_size = -16; },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.page_size is -16", "needed: 1 to 1048576"}},
    {"huge page size",
     [](Desc& d, Options&) { d.page_size = 1048577; },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.page_size is 1048577", "needed: 1 to 1048576"}},
    {"q dtype 4",
     [](Desc& d, Options&) { set_q_dtype(&d, 4); },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.q_dtype is 4", "0 to 3"}},
    {"KV dtype -1",
     [](Desc& d, Options&) { set_kv_dtype(&d, -1); },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.kv_dtype is -1", "0 to 3"}},
    {"out dtype 99",
     [](Desc& d, Options&) { set_out_dtype(&d, 99); },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.out_dtype is 99", "0 to 3"}},
    {"fp8 queries",
     [](Desc& d, Options&) { d.q_dtype = HEADRACE_FLOAT8_E4M3; },
     HEADRACE_UNSUPPORTED,
     {"desc.q_dtype is HEADRACE_FLOAT8_E4M3", "HEADRACE_BFLOAT16"}},
    {"fp8 outputs",
     [](Desc& d, Options&) { d.out_dtype = HEADRACE_FLOAT8_E4M3; },
     HEADRACE_UNSUPPORTED,
     {"desc.out_dtype is HEADRACE_FLOAT8_E4M3", "HEADRACE_BFLOAT16"}},
    {"layout 2",
     [](Desc& d, Options&) { set_layout(&d, 2); },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.layout is 2", "0 to 1"}},
    {"sm_scale NaN",
     [](Desc& d, Options&) { d.sm_scale = std::nanf(""); },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.sm_scale is nan", "finite"}},
    {"sm_scale infinite",
     [](Desc& d, Options&) { d.sm_scale = std::numeric_limits<float>::infinity(); },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.sm_scale is inf", "finite"}},

    {"negative K token stride",
     [](Desc& d, Options&) { d.k_token_stride = -128; },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.k_token_stride is -128", "0 (packed)"}},
    {"negative V page stride",
     [](Desc& d, Options&) { d.v_page_stride = -1; },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.v_page_stride is -1", "0 (packed)"}},
    {"K heads that overlap",
     [](Desc& d, Options&) { d.k_head_stride = 63; },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.k_head_stride is 63", "at least 64"}},
    {"V tokens that overlap",
     [](Desc& d, Options&) { d.v_token_stride = 127; },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.v_token_stride is 127", "at least 128"}},
    {"K heads across the tokens that overlap",
     [](Desc& d, Options&) { d.k_token_stride = 64, d.k_head_stride = 255; },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.k_head_stride is 255", "at least 256"}},
    {"V pages closer than one row",
     [](Desc& d, Options&) { d.v_page_stride = 32; },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.v_page_stride is 32", "at least 64"}},
    {"a stride past the limit",
     [](Desc& d, Options&) { d.k_page_stride = INT64_MAX; },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.k_page_stride is 9223372036854775807", "274877906944"}},
    {"packed strides past the limit",
     [](Desc& d, Options&) { d.k_head_stride = 1ll << 37, d.page_size = 1024; },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.k_page_stride is", "274877906944"}},
    {"q heads that overlap",
     [](Desc& d, Options&) { d.q_head_stride = 1; },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.q_head_stride is 1;", "at least 64"}},
    {"q requests that overlap",
     [](Desc& d, Options&) { d.q_request_stride = 255; },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.q_request_stride is 255", "at least 256"}},
    {"out requests that overlap",
     [](Desc& d, Options&) { d.out_request_stride = 255; },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.out_request_stride is 255", "at least 256"}},
    {"negative out head stride",
     [](Desc& d, Options&) { d.out_head_stride = -64; },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.out_head_stride is -64", "0 (packed)"}},
    {"LSE requests that overlap",
     [](Desc& d, Options&) { d.lse_request_stride = 3; },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.lse_request_stride is 3", "at least 4"}},
    {"LSE heads that overlap",
     [](Desc& d, Options&) { d.lse_request_stride = 1, d.lse_head_stride = 2; },
     HEADRACE_INVALID_ARGUMENT,
     {"desc.lse_head_stride is 2", "at least 3"}},

    {"options.struct_size",
     [](Desc&, Options& o) { o.struct_size = 0; },
     HEADRACE_INVALID_ARGUMENT,
     {"options.struct_size is 0", "needed: 24"}},
    {"no requests",
     [](Desc&, Options& o) { o.max_requests = 0; },
     HEADRACE_INVALID_ARGUMENT,
     {"options.max_requests is 0", "1 to 65536"}},
    {"too many requests",
     [](Desc&, Options& o) { o.max_requests = 65537; },
     HEADRACE_INVALID_ARGUMENT,
     {"options.max_requests is 65537", "1 to 65536"}},
    {"max_seq_len 0",
     [](Desc&, Options& o) { o.max_seq_len = 0; },
     HEADRACE_INVALID_ARGUMENT,
     {"options.max_seq_len is 0", "1 to 2147483647"}},
    {"invariant 2",
     [](Desc&, Options& o) { o.invariant = 2; },
     HEADRACE_INVALID_ARGUMENT,
     {"options.invariant is 2", "0 to 1"}},
    {"check_plans -1",
     [](Desc&, Options& o) { o.check_plans = -1; },
     HEADRACE_INVALID_ARGUMENT,
     {"options.check_plans is -1", "0 to 1"}},
};

}  // namespace

TEST_CASE("wrong descriptions and options are refused, and nothing is written") {
  const Context context(HEADRACE_DEVICE_CPU, 2);
  UniformProblem problem({5, 9, 3});
  const headrace_plan_sizes good = context.plan_sizes(problem.desc(), problem.options());

  for (const Wrong& wrong : kWrong) {
    INFO("wrong: " << wrong.what);
    headrace_attention_desc desc = problem.desc();
    headrace_plan_options options = problem.options();
    wrong.spoil(desc, options);

    headrace_plan_sizes sizes{};
    sizes.struct_size = sizeof(sizes);
    expect_error(headrace_plan_get_sizes(context.get(), &desc, &options, &sizes), wrong.status,
                 wrong.message);
    CHECK(sizes.plan_bytes == 0);
    CHECK(sizes.workspace_bytes == 0);
    CHECK(sizes.alignment == 0);

    GuardedBuffer buffer(good.plan_bytes);
    const auto before = buffer.memory();
    headrace_plan* const untouched = reinterpret_cast<headrace_plan*>(0x5A);
    headrace_plan* plan = untouched;
    expect_error(
        headrace_plan_create(context.get(), &desc, &options, buffer.data(), good.plan_bytes, &plan),
        wrong.status, wrong.message);
    CHECK(plan == untouched);
    CHECK(buffer.memory() == before);
  }
}

TEST_CASE("strides that do not overlap are accepted") {
  const Context context(HEADRACE_DEVICE_CPU, 1);
  const UniformProblem problem({5, 9, 3});
  headrace_attention_desc desc = problem.desc();

  SECTION("K and V interleaved in one pool") {
    desc.k_page_stride = desc.v_page_stride = 2 * 4 * 2 * 64;
  }
  SECTION("heads outside the pages") {
    desc.k_token_stride = 64;
    desc.k_page_stride = 4 * 64;
    desc.k_head_stride = 1000 * 4 * 64;
  }
  SECTION("q cut out of a packed QKV tensor") { desc.q_request_stride = (4 + 2 + 2) * 64; }
  SECTION("LSE by head") {
    desc.lse_request_stride = 1;
    desc.lse_head_stride = 3;
  }
  SECTION("padded heads, the last one without its padding") {
    desc.out_head_stride = 80;
    desc.out_request_stride = 3 * 80 + 64;
  }
  SECTION("the stride of a single KV head does not matter") {
    desc.num_kv_heads = 1;
    desc.k_head_stride = 1;
  }
  CHECK(context.plan_sizes(desc, problem.options()).plan_bytes > 0);
}

TEST_CASE("wrong pointers and buffers of plan calls") {
  const Context context(HEADRACE_DEVICE_CPU, 2);
  const UniformProblem problem({5, 9, 3});
  const headrace_attention_desc desc = problem.desc();
  const headrace_plan_options options = problem.options();
  headrace_plan_sizes sizes{};
  sizes.struct_size = sizeof(sizes);

  expect_error(headrace_plan_get_sizes(nullptr, &desc, &options, &sizes), HEADRACE_INVALID_ARGUMENT,
               {"context is null"});
  expect_error(headrace_plan_get_sizes(context.get(), nullptr, &options, &sizes),
               HEADRACE_INVALID_ARGUMENT, {"desc is null"});
  expect_error(headrace_plan_get_sizes(context.get(), &desc, nullptr, &sizes),
               HEADRACE_INVALID_ARGUMENT, {"options is null"});
  expect_error(headrace_plan_get_sizes(context.get(), &desc, &options, nullptr),
               HEADRACE_INVALID_ARGUMENT, {"sizes is null"});
  sizes.struct_size = 16;
  expect_error(headrace_plan_get_sizes(context.get(), &desc, &options, &sizes),
               HEADRACE_INVALID_ARGUMENT, {"sizes.struct_size is 16", "needed: 40"});

  sizes = context.plan_sizes(desc, options);
  GuardedBuffer buffer(sizes.plan_bytes);
  const auto before = buffer.memory();
  headrace_plan* const untouched = reinterpret_cast<headrace_plan*>(0x5A);
  headrace_plan* plan = untouched;
  const auto create = [&](headrace_context* c, const headrace_attention_desc* d,
                          const headrace_plan_options* o, void* memory, std::size_t bytes) {
    return headrace_plan_create(c, d, o, memory, bytes, &plan);
  };
  const std::size_t bytes = sizes.plan_bytes;
  expect_error(create(nullptr, &desc, &options, buffer.data(), bytes), HEADRACE_INVALID_ARGUMENT,
               {"context is null"});
  expect_error(create(context.get(), nullptr, &options, buffer.data(), bytes),
               HEADRACE_INVALID_ARGUMENT, {"desc is null"});
  expect_error(create(context.get(), &desc, nullptr, buffer.data(), bytes),
               HEADRACE_INVALID_ARGUMENT, {"options is null"});
  expect_error(create(context.get(), &desc, &options, nullptr, bytes), HEADRACE_INVALID_ARGUMENT,
               {"plan_buffer is null"});
  expect_error(create(context.get(), &desc, &options, buffer.span().data() + 64, bytes),
               HEADRACE_INVALID_ARGUMENT, {"plan_buffer is 0x", "multiple of 128"});
  expect_error(
      create(context.get(), &desc, &options, buffer.data(), bytes - 1), HEADRACE_BUFFER_TOO_SMALL,
      {"plan_buffer_bytes is " + std::to_string(bytes - 1), "at least " + std::to_string(bytes)});
  expect_error(headrace_plan_create(context.get(), &desc, &options, buffer.data(), bytes, nullptr),
               HEADRACE_INVALID_ARGUMENT, {"plan is null"});
  CHECK(plan == untouched);
  CHECK(buffer.memory() == before);
}
