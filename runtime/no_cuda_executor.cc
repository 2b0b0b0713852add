// Stands in for cuda_executor.cc in builds without CUDA.
#include "runtime/cuda_executor.h"
#include "runtime/status.h"

namespace headrace::runtime {

headrace_status create_cuda_executor(std::uint32_t /*num_workers*/,
                                     std::unique_ptr<Executor>& /*executor*/) {
  return fail(HEADRACE_UNSUPPORTED,
              "options.device is HEADRACE_DEVICE_CUDA, but this build has no CUDA executor; "
              "needed: HEADRACE_DEVICE_CPU or HEADRACE_DEVICE_AUTO");
}

}  // namespace headrace::runtime
