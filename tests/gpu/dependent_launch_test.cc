// Runs that start while the kernel before them still runs.
#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/gpu/graph.h"
#include "tests/gpu/late_producer.h"
#include "tests/gpu/stream.h"
#include "tests/support/compare.h"
#include "tests/support/cuda_check.h"
#include "tests/support/problem.h"
#include "tests/support/run_problem.h"
#include "tests/support/timeline.h"

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

// A producer, a dependent run and a dependent consumer of its outputs.
class LateStep {
 public:
  // With `planned_lens` other than the problem's the plan is right all the same.
  LateStep(const Device& device, const ProblemSpec& spec, std::int32_t fresh_tokens,
           std::span<const std::int32_t> planned_lens)
      : fresh_tokens_(fresh_tokens),
        fresh_(make_problem(spec)),
        stale_(before_producer(spec, fresh_, fresh_tokens)),
        problem_(stale_),
        memory_(problem_, device.kind(), Guards::kBytes, true),
        plan_(device, fresh_.desc, static_cast<std::int32_t>(planned_lens.size()), 9000),
        q_(on_device(fresh_.q)),
        k_(on_device(fresh_.pools[0])),
        v_(on_device(fresh_.pools[1])),
        block_table_(on_device(fresh_.block_table)),
        seq_lens_(on_device(fresh_.seq_lens)),
        consumed_(device.kind(), memory_.collect().out.size(), Guards::kBytes) {
    plan_.update(planned_lens);
  }

  const Problem& fresh() const { return fresh_; }

  // Everything as before the producer.
  void rewind() {
    problem_ = stale_;
    memory_.upload();
    consumed_.upload(std::vector<std::byte>(consumed_.size(), std::byte{0xFF}));
    require_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  // Of the starts to come.
  void record(DeviceBuffer& timeline) {
    timeline_ = static_cast<headrace_timeline_record*>(timeline.data());
  }
  std::size_t max_items() const { return plan_.max_items(); }

  headrace_status start(const Stream& stream) {
    const headrace_run_args live = memory_.args();
    const auto late = [](const void* to, const DeviceBuffer& from) {
      return LateCopy{const_cast<void*>(to), from.data(), from.size()};
    };
    const LateCopies copies{{late(live.q, q_), late(live.k_cache, k_), late(live.v_cache, v_),
                             late(live.block_table, block_table_), late(live.seq_lens, seq_lens_)},
                            fresh_tokens_ == kAnyToken ? 5 : 3};
    require_cuda(produce_late(copies, kSleepUs, stream.get()), "produce_late");
    const headrace_status status = plan_.try_run(memory_, [&](headrace_run_args& args) {
      args.stream = stream.get();
      args.dependent_launch = 1;
      args.fresh_tokens = fresh_tokens_;
      args.timeline = timeline_;
    });
    require_cuda(consume_dependent({consumed_.data(), live.out, consumed_.size()}, stream.get()),
                 "consume_dependent");
    return status;
  }

  // What is wrong after a start; "" if nothing is.
  std::string wrong(const Expected& expected) {
    problem_ = fresh_;  // as the inputs are now
    const Result result = memory_.collect();
    std::string found = defect(fresh_, expected, result);
    if (consumed_.download() != result.out) found += "the consumer read other outputs; ";
    return found;
  }

 private:
  std::int32_t fresh_tokens_;
  Problem fresh_;
  Problem stale_;
  Problem problem_;  // what is in memory
  ProblemMemory memory_;
  TestPlan plan_;
  DeviceBuffer q_;
  DeviceBuffer k_;
  DeviceBuffer v_;
  DeviceBuffer block_table_;
  DeviceBuffer seq_lens_;
  DeviceBuffer consumed_;
  headrace_timeline_record* timeline_ = nullptr;
};

// From the first item handed to the load warps until the last has ended.
double us_under_way(const DeviceBuffer& timeline) {
  const std::uint64_t untouched = untouched_timeline(1).front().finished;
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t last = 0;
  for (const headrace_timeline_record& record : read_timeline(timeline)) {
    if (record.finished == untouched) continue;
    first = std::min(first, record.issued);
    last = std::max(last, record.finished);
  }
  REQUIRE(first < last);
  return static_cast<double>(last - first) / 1e3;
}

TEST_CASE("gpu: a dependent run uses what the kernel before it writes late, also in a graph") {
  const Device device(HEADRACE_DEVICE_CUDA, 0);
  const Stream stream;
  for (const headrace_dtype kv_dtype : {HEADRACE_BFLOAT16, HEADRACE_FLOAT8_E4M3}) {
    for (const std::int32_t group : {1, 4, 16, 24}) {  // 24: two passes
      const ProblemSpec spec = spec_of(kv_dtype, group);
      const Expected expected = solve(make_problem(spec));
      const std::vector<std::int32_t> short_lens(spec.seq_lens.size(), 1);
      for (const std::int32_t fresh_tokens : {kAnyToken, 1, 4}) {
        for (const bool whole : {false, true}) {
          CAPTURE(kv_dtype, group, fresh_tokens, whole);
          // Requests planned as short ones are not split.
          LateStep step(device, spec, fresh_tokens, whole ? short_lens : spec.seq_lens);
          step.rewind();
          require_ok(step.start(stream));
          stream.wait();
          CHECK(step.wrong(expected) == "");

          const Graph graph(stream, [&] { return step.start(stream); });
          for (int replay = 0; replay < 3; ++replay) {
            step.rewind();
            graph.launch(stream);
            stream.wait();
            CHECK(step.wrong(expected) == "");
          }
        }
      }
    }
  }
}

// The work takes some 30 us, so a run that is under way for much longer has waited for the producer
// in its midst, and one that is not began after it.
TEST_CASE("gpu: a dependent run starts early where the caller says what is fresh, only there") {
  const Device device(HEADRACE_DEVICE_CUDA, 0);
  const Stream stream;
  const ProblemSpec spec = spec_of(HEADRACE_BFLOAT16, 4);
  for (const std::int32_t fresh_tokens : {kAnyToken, 1}) {
    LateStep step(device, spec, fresh_tokens, spec.seq_lens);
    DeviceBuffer timeline(device.kind(), step.max_items() * sizeof(headrace_timeline_record),
                          Guards::kBytes);
    step.record(timeline);
    const std::vector<headrace_timeline_record> untouched = untouched_timeline(step.max_items());
    const Graph graph(stream, [&] { return step.start(stream); });
    for (int replay = 0; replay < 3; ++replay) {
      step.rewind();
      timeline.upload(std::as_bytes(std::span(untouched)));
      graph.launch(stream);
      stream.wait();
      const double us = us_under_way(timeline);
      CAPTURE(fresh_tokens, replay, us);
      if (fresh_tokens == kAnyToken) {
        CHECK(us < kSleepUs / 2);
      } else {
        CHECK(us > kSleepUs / 2);
      }
    }
  }
}

// Every run has outputs of its own, so that none can hide behind the next. Some runs have fewer
// rows than planned: their blocks begin with items that are not theirs.
TEST_CASE("gpu: dependent runs in a row share plan and workspace, layer after layer") {
  constexpr std::size_t kNumRuns = 200;
  constexpr std::size_t kFewRows = 2;
  const Device device(HEADRACE_DEVICE_CUDA, 0);
  const Stream stream;
  for (const headrace_dtype kv_dtype : {HEADRACE_BFLOAT16, HEADRACE_FLOAT8_E4M3}) {
    for (const std::size_t every :
         {kNumRuns, std::size_t{3}}) {  // the last of so many has few rows
      CAPTURE(kv_dtype, every);
      ProblemSpec spec = spec_of(kv_dtype, 4);
      const Problem first = make_problem(spec);
      spec.seed = 7;
      const Problem second = make_problem(spec);
      const ProblemMemory memories[] = {{first, device.kind(), Guards::kBytes, true},
                                        {second, device.kind(), Guards::kBytes, true}};
      const std::size_t num_rows = first.num_requests();
      TestPlan plan(device, first.desc, static_cast<std::int32_t>(num_rows), 9000);
      plan.update(first.seq_lens, stream.get());
      for (const ProblemMemory& memory : memories) {
        require_ok(plan.try_run(memory, [&](auto& args) { args.stream = stream.get(); }));
      }
      stream.wait();
      const Result ordinary[] = {memories[0].collect(), memories[1].collect()};
      CHECK(defect(first, ordinary[0]) == "");
      CHECK(defect(second, ordinary[1]) == "");

      const std::size_t out_bytes = ordinary[0].out.size();
      const DeviceBuffer outs(device.kind(), kNumRuns * out_bytes, Guards::kBytes);
      const auto rows_of = [&](std::size_t i) {
        return i % every == every - 1 ? kFewRows : num_rows;
      };
      for (std::size_t i = 0; i < kNumRuns; ++i) {
        require_ok(plan.try_run(memories[i % 2], [&](headrace_run_args& args) {
          args.num_requests = static_cast<std::int32_t>(rows_of(i));
          args.out = static_cast<std::byte*>(outs.data()) + i * out_bytes;
          args.stream = stream.get();
          args.dependent_launch = 1;
          args.fresh_tokens = 1;
        }));
      }
      stream.wait();
      const std::vector<std::byte> all = outs.download();
      std::size_t num_different = 0;
      for (std::size_t i = 0; i < kNumRuns; ++i) {
        std::vector<std::byte> right = ordinary[i % 2].out;
        const std::size_t row_bytes = out_bytes / num_rows;
        std::fill(right.begin() + static_cast<std::ptrdiff_t>(rows_of(i) * row_bytes), right.end(),
                  std::byte{0xFF});
        if (!std::ranges::equal(std::span(all).subspan(i * out_bytes, out_bytes), right)) {
          ++num_different;
        }
      }
      CHECK(num_different == 0);
      CHECK(outs.guards_intact());
    }
  }
}

}  // namespace
}  // namespace headrace::tests
