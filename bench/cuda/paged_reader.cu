#include <algorithm>

#include "bench/cuda/device.h"
#include "bench/cuda/paged_reader.h"
#include "kernels/cuda/ptx/copy.cuh"
#include "kernels/cuda/ptx/mbarrier.cuh"

namespace headrace::bench::cuda {
namespace {

namespace ptx = headrace::cuda::ptx;

// Every warp keeps a ring of its own full: one thread cannot issue 2 KB copies fast enough for an
// SM.
constexpr int kWarps = 4;
constexpr std::uint32_t kWarpRingBytes = 32768;
constexpr std::uint32_t kMinPageBytes = 1024;
constexpr std::uint32_t kMaxSlots = kWarpRingBytes / kMinPageBytes;
constexpr std::uint32_t kLanes = 32;

struct SharedStorage {
  alignas(128) std::byte ring[kWarps][kWarpRingBytes];
  std::uint64_t full[kWarps][kMaxSlots];  // arrives: lane 0 of the warp, with the page's bytes
};

// Warps claim `pages_per_claim` (at most 32) pages at a time, the first ones without asking. The
// last warp to end sets the counters back.
__global__ void __launch_bounds__(kWarps* kLanes, 1)
    read_pages_kernel(PagedRead read, std::uint32_t pages_per_claim) {
  extern __shared__ __align__(128) std::byte memory[];
  auto& shared = *reinterpret_cast<SharedStorage*>(memory);
  const std::uint32_t warp = threadIdx.x / kLanes;
  const std::uint32_t lane = threadIdx.x % kLanes;
  const std::uint32_t num_slots = kWarpRingBytes / read.page_bytes;
  if (lane < num_slots) ptx::mbarrier_init(&shared.full[warp][lane], 1);
  ptx::fence_mbarrier_init();
  __syncwarp();

  const std::uint32_t num_warps = gridDim.x * kWarps;
  const auto claim = [&] {
    std::uint32_t claimed = 0;
    if (lane == 0) claimed = num_warps + atomicAdd(&read.counters[0], 1);
    return __shfl_sync(~0u, claimed, 0);
  };
  const auto load_id = [&](std::uint32_t claimed) {
    const std::uint64_t at = std::uint64_t{claimed} * pages_per_claim + lane;
    return lane < pages_per_claim && at < read.num_pages ? read.pages[at] : -1;
  };

  std::uint32_t num_issued = 0;
  // The ids of a claim are on their way while the one before it is issued.
  std::int32_t id = load_id(blockIdx.x + warp * gridDim.x);
  while (__any_sync(~0u, id >= 0)) {
    const std::int32_t next_id = load_id(claim());
    for (std::uint32_t i = 0; i < pages_per_claim; ++i) {
      const std::int32_t page = __shfl_sync(~0u, id, i);
      if (page < 0) break;
      const std::uint32_t slot = num_issued % num_slots;
      if (lane == 0) {
        if (num_issued >= num_slots) {
          ptx::mbarrier_wait(&shared.full[warp][slot], (num_issued / num_slots - 1) & 1);
        }
        ptx::mbarrier_arrive_expect(&shared.full[warp][slot], read.page_bytes);
        ptx::copy_bytes(&shared.ring[warp][slot * read.page_bytes],
                        read.pool + std::size_t(page) * read.page_bytes, read.page_bytes,
                        &shared.full[warp][slot]);
      }
      ++num_issued;
    }
    id = next_id;
  }
  if (lane != 0) return;
  for (std::uint32_t i = num_issued - min(num_issued, num_slots); i < num_issued; ++i) {
    ptx::mbarrier_wait(&shared.full[warp][i % num_slots], i / num_slots & 1);
  }
  if (atomicAdd(&read.counters[1], 1) == num_warps - 1) {
    read.counters[0] = 0;
    read.counters[1] = 0;
  }
}

}  // namespace

void read_pages(const PagedRead& read, std::int32_t num_sms, cudaStream_t stream) {
  check(cudaFuncSetAttribute(read_pages_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             sizeof(SharedStorage)),
        "cudaFuncSetAttribute");
  // Small enough that every warp gets several claims.
  const auto num_warps = static_cast<std::uint32_t>(num_sms * kWarps);
  const std::uint32_t pages_per_claim = std::clamp(read.num_pages / num_warps / 8, 1u, kLanes);
  read_pages_kernel<<<static_cast<unsigned>(num_sms), kWarps * kLanes, sizeof(SharedStorage),
                      stream>>>(read, pages_per_claim);
  check(cudaGetLastError(), "read_pages");
}

}  // namespace headrace::bench::cuda
