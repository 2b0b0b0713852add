#include "bench/backend.h"

#include <utility>

namespace headrace::bench {

std::unique_ptr<Backend> make_backend(headrace_device device, std::int32_t num_workers,
                                      std::size_t working_set_bytes) {
  Context context(device, num_workers);
  const auto make =
      context.info().device == HEADRACE_DEVICE_CUDA ? make_cuda_backend : make_cpu_backend;
  return make(std::move(context), working_set_bytes);
}

}  // namespace headrace::bench
