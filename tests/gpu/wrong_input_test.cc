// What the CUDA executor refuses beyond what every executor does.
#include <functional>
#include <string>
#include <vector>

#include "tests/api/expect_error.h"
#include "tests/catch.h"
#include "tests/support/problem.h"
#include "tests/support/run_problem.h"

namespace headrace::tests {
namespace {

TEST_CASE("gpu: descriptions that only the CPU executor takes") {
  const struct {
    const char* name;
    std::function<void(headrace_attention_desc&)> change;
    std::vector<std::string> message;
  } cases[] = {
      {"f32 queries",
       [](auto& desc) { desc.q_dtype = HEADRACE_FLOAT32; },
       {"desc.q_dtype 2 with desc.kv_dtype 0", "q bf16 or fp16"}},
      {"f32 caches", [](auto& desc) { desc.kv_dtype = HEADRACE_FLOAT32; }, {"desc.kv_dtype 2"}},
      {"caches of another 16-bit type",
       [](auto& desc) { desc.kv_dtype = HEADRACE_FLOAT16; },
       {"desc.kv_dtype 1", "the same or fp8 e4m3"}},
      {"f32 outputs",
       [](auto& desc) { desc.out_dtype = HEADRACE_FLOAT32; },
       {"desc.out_dtype is HEADRACE_FLOAT32", "bf16 or fp16"}},
      {"head dim", [](auto& desc) { desc.head_dim = 64; }, {"desc.head_dim is 64", "128"}},
      {"page size",
       [](auto& desc) { desc.page_size = 20; },
       {"desc.page_size is 20", "a multiple of 8"}},
      {"page size 1",
       [](auto& desc) { desc.page_size = 1; },
       {"desc.page_size is 1", "a multiple of 8"}},
      {"K heads",
       [](auto& desc) { desc.k_head_stride = 132; },
       {"desc.k_head_stride is 132", "a multiple of 8 elements"}},
      {"V tokens",
       [](auto& desc) { desc.v_token_stride = 1028; },
       {"desc.v_token_stride is 1028", "a multiple of 8 elements"}},
      {"V pages",
       [](auto& desc) { desc.v_page_stride = 16 * 1024 + 4; },
       {"desc.v_page_stride is 16388", "a multiple of 8 elements"}},
      {"fp8 heads",
       [](auto& desc) {
         desc.kv_dtype = HEADRACE_FLOAT8_E4M3;
         desc.k_head_stride = 136;
       },
       {"desc.k_head_stride is 136", "a multiple of 16 elements"}},
      {"queries",
       [](auto& desc) { desc.q_head_stride = 132; },
       {"desc.q_head_stride is 132", "a multiple of 8 elements"}},
      {"outputs",
       [](auto& desc) { desc.out_head_stride = 130; },
       {"desc.out_head_stride is 130", "a multiple of 4 elements"}},
  };
  const Device device(HEADRACE_DEVICE_CUDA, 0);
  for (const auto& wrong : cases) {
    CAPTURE(wrong.name);
    headrace_attention_desc desc = headrace_attention_desc_default();
    desc.num_qo_heads = 32;
    desc.num_kv_heads = 8;
    wrong.change(desc);
    headrace_plan_options options = headrace_plan_options_default();
    options.max_requests = 4;
    headrace_plan_sizes sizes{};
    sizes.struct_size = sizeof(sizes);
    expect_error(headrace_plan_get_sizes(device.context(), &desc, &options, &sizes),
                 HEADRACE_UNSUPPORTED, wrong.message);
    CHECK(sizes.plan_bytes == 0);
  }
}

template <typename T>
void shift(T*& pointer, std::ptrdiff_t bytes) {
  pointer = reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(pointer) +
                                 static_cast<std::uintptr_t>(bytes));
}

TEST_CASE("gpu: misaligned pointers are refused, and nothing is written") {
  const struct {
    const char* name;
    std::function<void(headrace_run_args&)> change;
    const char* needed;
  } cases[] = {
      {"args.q", [](auto& args) { shift(args.q, 8); }, "a multiple of 16 bytes"},
      {"args.k_cache", [](auto& args) { shift(args.k_cache, 8); }, "a multiple of 16 bytes"},
      {"args.v_cache", [](auto& args) { shift(args.v_cache, 8); }, "a multiple of 16 bytes"},
      {"args.out", [](auto& args) { shift(args.out, 4); }, "a multiple of 8 bytes"},
      {"args.lse", [](auto& args) { shift(args.lse, 2); }, "a multiple of 4 bytes"},
  };
  const Device device(HEADRACE_DEVICE_CUDA, 0);
  const Problem problem = make_problem({.seq_lens = {100, 17}});
  TestPlan plan(device, problem.desc, 2, 128);
  plan.update(problem.seq_lens);
  const ProblemMemory memory(problem, device.kind(), Guards::kBytes, true);
  const Result before = memory.collect();
  for (const auto& wrong : cases) {
    CAPTURE(wrong.name);
    expect_error(plan.try_run(memory, wrong.change), HEADRACE_INVALID_ARGUMENT,
                 {wrong.name, wrong.needed});
  }
  CHECK(memory.collect() == before);
}

}  // namespace
}  // namespace headrace::tests
