// In place of backend.cc where the build has no CUDA.
#include <stdexcept>

#include "bench/backend.h"

namespace headrace::bench {

// Not reached: a library without CUDA makes no CUDA context.
std::unique_ptr<Backend> make_cuda_backend(Context, std::size_t) {
  throw std::logic_error("this build has no CUDA");
}

}  // namespace headrace::bench
