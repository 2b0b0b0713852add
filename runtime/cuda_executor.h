// The CUDA executor: one launch of the persistent kernel per run.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/executor.h"

namespace headrace::runtime {

// An executor for the calling thread's current CUDA device. num_workers: blocks of a launch, 0 for
// one per SM. Errors: UNSUPPORTED where build, driver or device cannot run the kernel, CUDA_ERROR.
headrace_status create_cuda_executor(std::uint32_t num_workers,
                                     std::unique_ptr<Executor>& executor);

}  // namespace headrace::runtime
