// Wrong data in validation mode: the message names the entry, and nothing is written.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/support/compare.h"
#include "tests/support/problem.h"
#include "tests/support/run_problem.h"

namespace headrace::tests {
namespace {

Problem good_problem() {
  ProblemSpec spec{.seq_lens = {40, 0, 17}};
  spec.head_dim = smallest_head_dim();
  return make_problem(spec);
}

// Runs `problem` on a plan for the lengths of good_problem(), with validation.
void check_refused(const Problem& problem, const std::vector<std::string>& named) {
  const Device device(kTestedDevice, 2);
  TestPlan plan(device, problem.desc, 3, 64);
  plan.update(good_problem().seq_lens);
  const ProblemMemory memory(problem, device.kind(), Guards::kBytes, true);
  const Result before = memory.collect();
  const headrace_status status =
      plan.try_run(memory, [](headrace_run_args& args) { args.validate = 1; });
  const std::string message = headrace_last_error();
  CAPTURE(message);
  CHECK(status == HEADRACE_INVALID_DATA);
  for (const std::string& text : named) CHECK(message.find(text) != std::string::npos);
  CHECK(memory.collect() == before);
}

TEST_CASE("decode: validation accepts good data and garbage where nothing is read") {
  const Problem problem = good_problem();
  const Device device(kTestedDevice, 2);
  TestPlan plan(device, problem.desc, 3, 64);
  plan.update(problem.seq_lens);
  const ProblemMemory memory(problem, device.kind(), Guards::kBytes, true);
  CHECK(plan.try_run(memory, [](headrace_run_args& args) { args.validate = 1; }) == HEADRACE_OK);
  CHECK(defect(problem, memory.collect()) == "");
}

TEST_CASE("decode: a page id out of the pool is refused") {
  const Problem good = good_problem();
  const auto stride = static_cast<std::size_t>(good.block_table_stride);
  for (const std::int32_t id : {static_cast<std::int32_t>(good.num_pages), -1, INT32_MAX}) {
    // The first and last entry of the first request, the last entry of the last request.
    for (const auto& [request, entry] : {std::pair{0, 0}, {0, 2}, {2, 1}}) {
      Problem bad = good;
      bad.block_table[static_cast<std::size_t>(request) * stride +
                      static_cast<std::size_t>(entry)] = id;
      check_refused(bad,
                    {"block_table[" + std::to_string(request) + "][" + std::to_string(entry) + "]",
                     std::to_string(id), std::to_string(good.num_pages)});
    }
  }
}

TEST_CASE("decode: a length above its table row, or below 0, is refused") {
  const Problem good = good_problem();
  Problem long_request = good;
  const auto most = static_cast<std::int32_t>(good.block_table_stride * good.desc.page_size);
  std::ranges::fill(long_request.block_table, 0);
  long_request.seq_lens[2] = most + 1;
  check_refused(long_request,
                {"seq_lens[2]", std::to_string(most + 1), std::to_string(good.block_table_stride)});
  Problem negative = good;
  negative.seq_lens[1] = -5;
  check_refused(negative, {"seq_lens[1]", "-5"});
}

}  // namespace
}  // namespace headrace::tests
