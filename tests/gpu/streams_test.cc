// Plans and runs that are under way at the same time.
#include <array>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/gpu/stream.h"
#include "tests/support/compare.h"
#include "tests/support/cuda_check.h"
#include "tests/support/problem.h"
#include "tests/support/run_problem.h"

namespace headrace::tests {
namespace {

ProblemSpec spec_of(std::vector<std::int32_t> seq_lens, std::uint64_t seed) {
  ProblemSpec spec{.seq_lens = std::move(seq_lens)};
  spec.num_qo_heads = 32;
  spec.num_kv_heads = 8;
  spec.seed = seed;
  return spec;
}

// A problem in device memory with a plan for it, and the right result.
struct Job {
  Job(const Device& device, const ProblemSpec& spec)
      : problem(make_problem(spec)),
        memory(problem, device.kind(), Guards::kBytes, true),
        plan(device, problem.desc, 8, 4096) {
    plan.update(problem.seq_lens);
    start(nullptr);
    right = memory.collect();
    wrong = defect(problem, right);
    memory.upload();
  }

  void start(cudaStream_t stream) { start(plan, stream); }
  void start(TestPlan& chosen, cudaStream_t stream) {
    require_ok(chosen.try_run(memory, [stream](headrace_run_args& args) { args.stream = stream; }));
  }

  Problem problem;
  ProblemMemory memory;
  TestPlan plan;
  Result right;
  std::string wrong;  // what is wrong with `right`
};

TEST_CASE("gpu: two plans in a row while the stream is blocked, each with its run") {
  const Device device(HEADRACE_DEVICE_CUDA, 0);
  const Stream stream;
  // The second has fewer requests: its plan, used for the first, would leave rows out.
  Job first(device, spec_of({700, 3000, 64, 1, 500}, 1));
  Job second(device, spec_of({2000, 17}, 2));
  REQUIRE(first.wrong + second.wrong == "");

  Gate gate(stream);
  TestPlan& plan = first.plan;
  plan.update(first.problem.seq_lens, stream.get());
  first.start(plan, stream.get());
  plan.update(second.problem.seq_lens, stream.get());
  second.start(plan, stream.get());
  gate.open();
  stream.wait();
  CHECK(first.memory.collect() == first.right);
  CHECK(second.memory.collect() == second.right);
}

TEST_CASE("gpu: more plans in a row than can wait for a blocked stream") {
  const Device device(HEADRACE_DEVICE_CUDA, 0);
  const Stream stream;
  Job first(device, spec_of({700, 3000, 64, 1, 500}, 1));
  Job second(device, spec_of({2000, 17}, 2));
  REQUIRE(first.wrong + second.wrong == "");

  Gate gate(stream);
  std::jthread opener([&gate] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    gate.open();
  });
  for (int i = 0; i < 12; ++i) {
    Job& job = i % 2 == 0 ? first : second;
    first.plan.update(job.problem.seq_lens, stream.get());
    job.start(first.plan, stream.get());
  }
  stream.wait();
  CHECK(first.memory.collect() == first.right);
  CHECK(second.memory.collect() == second.right);
}

TEST_CASE("gpu: two streams with two plans, interleaved 100 times") {
  const Device device(HEADRACE_DEVICE_CUDA, 0);
  const std::array<Stream, 2> streams;
  Job first(device, spec_of({700, 3000, 64, 1, 500}, 1));
  Job second(device, spec_of({2000, 17, 0, 900}, 2));
  REQUIRE(first.wrong + second.wrong == "");
  for (int i = 0; i < 100; ++i) {
    first.plan.update(first.problem.seq_lens, streams[0].get());
    first.start(streams[0].get());
    second.plan.update(second.problem.seq_lens, streams[1].get());
    second.start(streams[1].get());
  }
  for (const Stream& stream : streams) stream.wait();
  CHECK(first.memory.collect() == first.right);
  CHECK(second.memory.collect() == second.right);
}

TEST_CASE("gpu: two host threads") {
  std::array<std::string, 2> wrong;
  const auto work = [&wrong](std::size_t index) {
    try {
      const Device device(HEADRACE_DEVICE_CUDA, 0);
      const Stream stream;
      Job job(device, spec_of({700, 3000, 64}, index));
      wrong[index] = job.wrong;
      for (int i = 0; i < 50; ++i) {
        job.memory.upload();
        job.plan.update(job.problem.seq_lens, stream.get());
        job.start(stream.get());
        stream.wait();
        if (job.memory.collect() != job.right) wrong[index] += "another result; ";
      }
    } catch (const std::exception& error) {
      wrong[index] += error.what();
    }
  };
  {
    const std::jthread one(work, 0);
    const std::jthread other(work, 1);
  }
  CHECK(wrong[0] == "");
  CHECK(wrong[1] == "");
}

TEST_CASE("gpu: one plan gives equal bits 1000 times while another stream copies memory") {
  for (const headrace_dtype kv_dtype : {HEADRACE_BFLOAT16, HEADRACE_FLOAT8_E4M3}) {
    CAPTURE(kv_dtype);
    const Device device(HEADRACE_DEVICE_CUDA, 0);
    const Stream stream;
    const Stream copies;
    constexpr std::size_t kCopyBytes = std::size_t{128} << 20;
    const DeviceBuffer source(HEADRACE_DEVICE_CUDA, kCopyBytes, Guards::kNone);
    const DeviceBuffer target(HEADRACE_DEVICE_CUDA, kCopyBytes, Guards::kNone);
    ProblemSpec spec = spec_of({700, 3000, 64, 1, 500}, 1);
    spec.kv_dtype = kv_dtype;
    Job job(device, spec);
    REQUIRE(job.wrong == "");
    int different = 0;
    for (int i = 0; i < 1000; ++i) {
      job.memory.upload();
      for (int copy = 0; copy < 4; ++copy) {
        require_cuda(cudaMemcpyAsync(target.data(), source.data(), kCopyBytes,
                                     cudaMemcpyDeviceToDevice, copies.get()),
                     "cudaMemcpyAsync");
      }
      job.start(stream.get());
      stream.wait();
      if (job.memory.collect() != job.right) ++different;
    }
    copies.wait();
    CHECK(different == 0);
  }
}

}  // namespace
}  // namespace headrace::tests
