#include "tests/support/random_problem.h"

#include <algorithm>
#include <climits>
#include <vector>

#include "tests/support/tested_device.h"

namespace headrace::tests {
namespace {

std::int32_t random_length(Random& random, std::int32_t page_size) {
  const auto near = [&random](std::int64_t end) {
    return static_cast<std::int32_t>(std::max<std::int64_t>(end + random.between(-1, 1), 0));
  };
  switch (random.between(0, 6)) {
    case 0:
      return static_cast<std::int32_t>(random.between(0, 1));
    case 1:
      return near(page_size * random.between(1, 3));
    case 2:
      return near(64 * random.between(1, 5));
    case 3:
      return static_cast<std::int32_t>(random.between(500, 2000));
    default:
      return static_cast<std::int32_t>(random.between(0, 300));
  }
}

std::vector<std::int32_t> random_lengths(Random& random, std::int64_t count,
                                         std::int32_t page_size) {
  std::vector<std::int32_t> seq_lens;
  for (std::int64_t r = 0; r < count; ++r) seq_lens.push_back(random_length(random, page_size));
  return seq_lens;
}

// Of any kind, its lengths aside.
ProblemSpec any_spec(Random& random) {
  ProblemSpec spec;
  spec.num_kv_heads = random.pick({1, 2, 3, 4, 8});
  const std::int32_t group = random.one_in(4) ? static_cast<std::int32_t>(random.between(1, 64))
                                              : random.pick({1, 2, 3, 4, 5, 6, 7, 8});
  spec.num_qo_heads = spec.num_kv_heads * group;
  spec.head_dim = random.pick({64, 80, 96, 128, 192, 256});
  spec.page_size = random.pick({1, 3, 8, 16, 16, 24, 32, 64, 77, 128, 256});
  spec.q_dtype = random.pick({HEADRACE_BFLOAT16, HEADRACE_FLOAT16, HEADRACE_FLOAT32});
  spec.kv_dtype =
      random.pick({HEADRACE_BFLOAT16, HEADRACE_FLOAT16, HEADRACE_FLOAT32, HEADRACE_FLOAT8_E4M3});
  spec.out_dtype = random.pick({HEADRACE_BFLOAT16, HEADRACE_FLOAT16, HEADRACE_FLOAT32});
  spec.layout = random.pick({HEADRACE_NHD, HEADRACE_HND});
  spec.sm_scale = random.pick({0.0883883f, 0.125f, 1.0f, -0.37f, 1e-3f, 0.0f});
  spec.pools = random.pick({Pools::kApart, Pools::kInterleaved, Pools::kSliced, Pools::kPadded});
  spec.wide_rows = random.one_in(2);
  spec.scales = random.one_in(2);
  spec.shared_pages = random.pick({0, 0, 2, 20});
  spec.q_deviation = random.pick({1.0f, 4.0f});
  spec.kv_deviation = random.pick({1.0f, 0.1f, 5.0f});
  spec.poison = random.pick({Poison::kNan, Poison::kInfinity});
  spec.unused_entry = random.pick({INT_MAX, -1, INT_MIN});
  return spec;
}

}  // namespace

ProblemSpec random_spec(Random& random, std::uint64_t seed) {
  ProblemSpec spec = any_spec(random);
  while (!supported(spec)) spec = any_spec(random);
  spec.seed = seed;
  // Few tokens where there are many heads, to keep the reference quick.
  spec.seq_lens =
      random_lengths(random, random.between(1, spec.num_qo_heads > 32 ? 2 : 8), spec.page_size);
  return spec;
}

RunOptions random_options(Random& random, const ProblemSpec& spec) {
  RunOptions options;
  options.num_workers = kTestedDevice == HEADRACE_DEVICE_CUDA
                            ? random.pick({1, 2, 5, 64, 132, 132, 200})
                            : static_cast<std::int32_t>(random.between(1, 5));
  options.invariant = random.one_in(3);
  options.want_lse = !random.one_in(3);
  options.guards = random.pick({Guards::kBytes, Guards::kNone});
  if (random.one_in(2)) {
    const auto live = static_cast<std::int64_t>(spec.seq_lens.size());
    options.planned_lens = random_lengths(random, live + random.pick({0, 0, 3}), spec.page_size);
  }
  options.max_seq_len = random.pick({0, 0, 1, 5000});
  return options;
}

}  // namespace headrace::tests
