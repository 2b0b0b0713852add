#include "tests/gpu/stream.h"

#include <chrono>
#include <thread>

#include "tests/support/cuda_check.h"

namespace headrace::tests {

Stream::Stream() {
  require_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
}

Stream::~Stream() { cudaStreamDestroy(stream_); }

void Stream::wait() const { require_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

Gate::Gate(const Stream& stream) : stream_(stream) {
  require_cuda(cudaLaunchHostFunc(stream.get(), wait_until_open, this), "cudaLaunchHostFunc");
}

Gate::~Gate() {
  open();
  cudaStreamSynchronize(stream_.get());
}

void Gate::wait_until_open(void* gate) {
  using std::chrono::milliseconds;
  const std::atomic<bool>& open = static_cast<Gate*>(gate)->open_;
  for (int waited_ms = 0; !open && waited_ms < 20000; ++waited_ms) {
    std::this_thread::sleep_for(milliseconds(1));
  }
}

}  // namespace headrace::tests
