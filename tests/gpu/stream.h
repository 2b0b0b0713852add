// Streams, and work on them that waits for the host.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>

namespace headrace::tests {

// A stream that does not wait for the default one, nor the default one for it.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t get() const { return stream_; }
  void wait() const;

 private:
  cudaStream_t stream_ = nullptr;
};

// Holds up a stream until it is opened, at most 20 s. While it is closed, nothing may allocate or
// free device memory: that may wait for the stream.
class Gate {
 public:
  explicit Gate(const Stream& stream);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void open() { open_ = true; }

 private:
  static void wait_until_open(void* gate);

  const Stream& stream_;
  std::atomic<bool> open_ = false;
};

}  // namespace headrace::tests
