// The step path allocates nothing: every operator new of this program, the library's included, is
// counted. A program of its own, because it replaces operator new.
#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/api/uniform_problem.h"
#include "tests/catch.h"

namespace {

std::atomic<long> num_allocations = 0;

void* count_and_allocate(std::size_t bytes, std::size_t alignment) {
  ++num_allocations;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* const memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return count_and_allocate(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return count_and_allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

using namespace headrace;
using namespace headrace::tests;

TEST_CASE("update, run and their refusals allocate nothing") {
  const long before_set_up = num_allocations;
  const Context context(HEADRACE_DEVICE_CPU, 3);
  UniformProblem problem({5, 3000, 0, 64});
  PreparedPlan prepared(context, problem);
  CHECK(num_allocations > before_set_up);  // the counter counts, the library's allocations too

  headrace_plan* const plan = prepared.plan.get();
  headrace_run_args args = prepared.args(problem);
  args.validate = 1;
  headrace_run_args wrong = args;
  wrong.workspace_bytes = 0;
  const std::int32_t count = args.num_requests;

  const long before = num_allocations;
  bool statuses_right = true;
  for (std::int32_t i = 0; i < 50; ++i) {
    const std::int32_t* const lens = problem.seq_lens.data();
    statuses_right &= headrace_plan_update(plan, lens, 1 + i % count, nullptr) == HEADRACE_OK;
    statuses_right &= headrace_plan_update(plan, lens, count, nullptr) == HEADRACE_OK;
    statuses_right &= headrace_run(plan, &args) == HEADRACE_OK;
    statuses_right &= headrace_run(plan, &wrong) == HEADRACE_BUFFER_TOO_SMALL;
    statuses_right &= headrace_plan_update(plan, nullptr, count, nullptr) != HEADRACE_OK;
  }
  const long allocations = num_allocations - before;
  CHECK(statuses_right);
  CHECK(allocations == 0);
  CHECK(problem.results_right());
}
