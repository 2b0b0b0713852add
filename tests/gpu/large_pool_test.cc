// Pages far into a large pool.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/catch.h"
#include "tests/reference/dtypes.h"
#include "tests/support/compare.h"
#include "tests/support/cuda_memory.h"
#include "tests/support/problem.h"
#include "tests/support/run_problem.h"

namespace headrace::tests {
namespace {

// The problem's pages are copied into a pool of 9 GiB, as far apart as it allows, and the table
// renamed. All the rest of the pool is 0xFF: NaN.
TEST_CASE("gpu: page ids whose offset passes 2^32 bytes and elements") {
  ProblemSpec spec{.seq_lens = {300, 1, 130}};
  spec.num_qo_heads = 16;
  spec.num_kv_heads = 8;
  spec.page_size = 64;
  spec.pools = Pools::kInterleaved;
  Problem problem = make_problem(spec);
  // Bytes of a page of K and V together, and of the last page, whose end needs no padding.
  const std::size_t page_bytes =
      static_cast<std::size_t>(problem.k.page_stride) * dtype_bytes(spec.kv_dtype);
  const std::size_t num_far_pages = (std::size_t{9} << 30) / page_bytes;
  REQUIRE(static_cast<std::int64_t>(num_far_pages) * problem.k.page_stride > std::int64_t{1} << 32);
  const DeviceBuffer far_pool(HEADRACE_DEVICE_CUDA, num_far_pages * page_bytes, Guards::kNone);
  auto* const far_bytes = static_cast<std::byte*>(far_pool.data());

  // Page p becomes page (p + 1) * spread - 1.
  const auto num_pages = static_cast<std::size_t>(problem.num_pages);
  const std::size_t spread = num_far_pages / num_pages;
  const std::span<const std::byte> pool = problem.pools[0];
  for (std::size_t p = 0; p < num_pages; ++p) {
    const std::size_t bytes = std::min(page_bytes, pool.size() - p * page_bytes);
    cuda_upload(far_bytes + ((p + 1) * spread - 1) * page_bytes,
                pool.subspan(p * page_bytes, bytes));
  }
  const Expected expected = solve(problem);
  for (std::int32_t& page : problem.block_table) {
    if (page != spec.unused_entry) page = (page + 1) * static_cast<std::int32_t>(spread) - 1;
  }

  const Device device(HEADRACE_DEVICE_CUDA, 0);
  const ProblemMemory memory(problem, device.kind(), Guards::kBytes, true);
  TestPlan plan(device, problem.desc, 3, 300);
  plan.update(problem.seq_lens);
  require_ok(plan.try_run(memory, [&](headrace_run_args& args) {
    args.k_cache = far_bytes;
    args.v_cache =
        far_bytes + static_cast<std::size_t>(problem.v.offset) * dtype_bytes(spec.kv_dtype);
    args.num_pages = static_cast<std::int64_t>(num_far_pages);
    args.validate = 1;
  }));
  CHECK(defect(problem, expected, memory.collect()) == "");
}

}  // namespace
}  // namespace headrace::tests
