// Runs that start while the kernel before them still runs.
#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "tests/catch.h"
#include "tests/gpu/late_producer.h"
#include "tests/gpu/stream.h"
#include "tests/support/compare.h"
#include "tests/support/cuda_check.h"
#include "tests/support/problem.h"
#include "tests/support/run_problem.h"

namespace headrace::tests {
namespace {

constexpr std::uint32_t kSleepUs = 200;
constexpr std::int32_t kAnyToken = -1;

ProblemSpec spec_of(headrace_dtype kv_dtype, std::int32_t group) {
  ProblemSpec spec{.seq_lens = {0, 1, 2, 15, 16, 17, 300, 4096, 63, 9000}};
  spec.num_kv_heads = 2;
  spec.num_qo_heads = 2 * group;
  spec.kv_dtype = kv_dtype;
  spec.scales = kv_dtype == HEADRACE_FLOAT8_E4M3;
  spec.room = 9000;
  return spec;
}

// The problem before the producer has written: other queries; the newest tokens are NaN, or with
// kAnyToken everything is that of another problem.
Problem before_producer(const ProblemSpec& spec, const Problem& fresh, std::int32_t fresh_tokens) {
  ProblemSpec other = spec;
  other.seed = spec.seed + 1;
  if (fresh_tokens == kAnyToken) {
    other.seq_lens.assign(spec.seq_lens.size(), 40);
    Problem stale = make_problem(other);
    stale.k_scale = fresh.k_scale;
    stale.v_scale = fresh.v_scale;
    return stale;
  }
  Problem stale = fresh;
  stale.q = make_problem(other).q;
  const std::vector<float> nan(static_cast<std::size_t>(fresh.desc.head_dim),
                               std::numeric_limits<float>::quiet_NaN());
  for (std::size_t r = 0; r < fresh.num_requests(); ++r) {
    const std::int32_t len = fresh.seq_lens[r];
    for (std::int32_t t = std::max(len - fresh_tokens, 0); t < len; ++t) {
      for (std::int32_t h = 0; h < fresh.desc.num_kv_heads; ++h) {
        stale.store_cache(stale.k, r, t, h, nan);
        stale.store_cache(stale.v, r, t, h, nan);
      }
    }
  }
  return stale;
}

template <typename T>
DeviceBuffer on_device(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  DeviceBuffer buffer(HEADRACE_DEVICE_CUDA, bytes.size(), Guards::kNone);
  buffer.upload(bytes);
  return buffer;
}

void* writable(const void* pointer) { return const_cast<void*>(pointer); }

TEST_CASE("gpu: a dependent run uses what the kernel before it writes late") {
  const Device device(HEADRACE_DEVICE_CUDA, 0);
  const Stream stream;
  for (const headrace_dtype kv_dtype : {HEADRACE_BFLOAT16, HEADRACE_FLOAT8_E4M3}) {
    for (const std::int32_t group : {1, 4, 24}) {
      for (const std::int32_t fresh_tokens : {kAnyToken, 1, 4}) {
        CAPTURE(kv_dtype, group, fresh_tokens);
        const ProblemSpec spec = spec_of(kv_dtype, group);
        const Problem fresh = make_problem(spec);
        Problem problem = before_producer(spec, fresh, fresh_tokens);
        ProblemMemory memory(problem, device.kind(), Guards::kBytes, true);
        TestPlan plan(device, fresh.desc, static_cast<std::int32_t>(fresh.num_requests()), 9000);
        plan.update(fresh.seq_lens, stream.get());

        const DeviceBuffer q = on_device(fresh.q);
        const DeviceBuffer k = on_device(fresh.pools[0]);
        const DeviceBuffer v = on_device(fresh.pools[1]);
        const DeviceBuffer table = on_device(fresh.block_table);
        const DeviceBuffer lens = on_device(fresh.seq_lens);
        const headrace_run_args live = memory.args();
        LateCopies copies{{{writable(live.q), q.data(), q.size()},
                           {writable(live.k_cache), k.data(), k.size()},
                           {writable(live.v_cache), v.data(), v.size()},
                           {writable(live.block_table), table.data(), table.size()},
                           {writable(live.seq_lens), lens.data(), lens.size()}},
                          fresh_tokens == kAnyToken ? 5 : 3};
        require_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");

        require_cuda(produce_late(copies, kSleepUs, stream.get()), "produce_late");
        require_ok(plan.try_run(memory, [&](headrace_run_args& args) {
          args.stream = stream.get();
          args.dependent_launch = 1;
          args.fresh_tokens = fresh_tokens;
        }));
        stream.wait();
        problem = fresh;  // as the inputs are now
        CHECK(defect(problem, memory.collect()) == "");
      }
    }
  }
}

TEST_CASE("gpu: dependent runs in a row share plan and workspace, layer after layer") {
  const Device device(HEADRACE_DEVICE_CUDA, 0);
  const Stream stream;
  ProblemSpec spec = spec_of(HEADRACE_BFLOAT16, 4);
  const Problem first = make_problem(spec);
  spec.seed = 7;
  const Problem second = make_problem(spec);
  ProblemMemory memories[] = {{first, device.kind(), Guards::kBytes, true},
                              {second, device.kind(), Guards::kBytes, true}};
  TestPlan plan(device, first.desc, static_cast<std::int32_t>(first.num_requests()), 9000);
  plan.update(first.seq_lens, stream.get());
  const auto run = [&](const ProblemMemory& memory, std::int32_t dependent) {
    require_ok(plan.try_run(memory, [&](headrace_run_args& args) {
      args.stream = stream.get();
      args.dependent_launch = dependent;
      args.fresh_tokens = 1;
    }));
  };
  for (const ProblemMemory& memory : memories) run(memory, 0);
  stream.wait();
  const Result ordinary[] = {memories[0].collect(), memories[1].collect()};
  CHECK(defect(first, ordinary[0]) == "");
  CHECK(defect(second, ordinary[1]) == "");

  for (ProblemMemory& memory : memories) memory.upload();
  require_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  for (int i = 0; i < 200; ++i) run(memories[i % 2], 1);
  stream.wait();
  CHECK(memories[0].collect() == ordinary[0]);
  CHECK(memories[1].collect() == ordinary[1]);
}

}  // namespace
}  // namespace headrace::tests
