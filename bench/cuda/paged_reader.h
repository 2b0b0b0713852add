// Reads pages without computing anything.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace headrace::bench::cuda {

struct PagedRead {
  const std::byte* pool;
  const std::int32_t* pages;  // [num_pages] ids
  std::uint32_t num_pages;
  std::uint32_t page_bytes;  // a divisor of 4096, a multiple of 16
  std::uint32_t* counters;   // [2], zero before and after
};

void read_pages(const PagedRead& read, std::int32_t num_sms, cudaStream_t stream);

}  // namespace headrace::bench::cuda
