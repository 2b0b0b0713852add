// Times calls in a CUDA graph, where launching costs the host nothing.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>

namespace headrace::bench::cuda {

using Call = std::function<void(std::int32_t, cudaStream_t)>;

class TimedGraph {
 public:
  // Captures call(0) to call(num_calls - 1) and replays them a few times.
  TimedGraph(std::int32_t num_calls, const Call& call);

  std::int32_t num_calls() const { return num_calls_; }
  // One replay, us of all calls together.
  double replay_us();
  // Median over `replays`, us of one call.
  double call_us(std::int32_t replays);

 private:
  template <auto destroy>
  struct Destroy {
    template <typename T>
    void operator()(T* handle) const {
      destroy(handle);
    }
  };
  template <typename Handle, auto destroy>
  using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<destroy>>;

  std::int32_t num_calls_;
  Owned<cudaStream_t, cudaStreamDestroy> stream_;
  Owned<cudaEvent_t, cudaEventDestroy> begin_;
  Owned<cudaEvent_t, cudaEventDestroy> end_;
  Owned<cudaGraphExec_t, cudaGraphExecDestroy> executable_;
};

}  // namespace headrace::bench::cuda
