// Errors of the CUDA runtime as a status that names the call.
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/status.h"

namespace headrace::runtime {

inline headrace_status cuda_failure(const char* call, cudaError_t error) noexcept {
  cudaGetLastError();  // ours to report, not the caller's to stumble over
  return fail(HEADRACE_CUDA_ERROR, "{} failed: {} ({})", call, cudaGetErrorString(error),
              cudaGetErrorName(error));
}

}  // namespace headrace::runtime

// Calls a function of the CUDA runtime; when it fails, returns a status with its name and reason.
#define HEADRACE_RETURN_IF_CUDA_FAILS(function, ...)                       \
  do {                                                                     \
    const cudaError_t headrace_error = function(__VA_ARGS__);              \
    if (headrace_error != cudaSuccess) {                                   \
      return ::headrace::runtime::cuda_failure(#function, headrace_error); \
    }                                                                      \
  } while (false)
