// Work captured in a CUDA graph, ready to launch.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "headrace/headrace.h"
#include "tests/catch.h"
#include "tests/gpu/stream.h"
#include "tests/support/cuda_check.h"

namespace headrace::tests {

class Graph {
 public:
  // `work` puts something on the stream and returns a headrace_status.
  template <typename Work>
  Graph(const Stream& stream, const Work& work) {
    require_cuda(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal),
                 "cudaStreamBeginCapture");
    const headrace_status status = work();
    const std::string message = headrace_last_error();
    const cudaError_t ended = cudaStreamEndCapture(stream.get(), &graph_);
    INFO(message);
    REQUIRE(status == HEADRACE_OK);
    require_cuda(ended, "cudaStreamEndCapture");
    require_cuda(cudaGraphInstantiate(&executable_, graph_, 0), "cudaGraphInstantiate");
  }
  ~Graph() {
    cudaGraphExecDestroy(executable_);
    cudaGraphDestroy(graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void launch(const Stream& stream) const {
    require_cuda(cudaGraphLaunch(executable_, stream.get()), "cudaGraphLaunch");
  }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace headrace::tests
