#include "bench/cuda/graph.h"

#include <vector>

#include "bench/cuda/device.h"
#include "bench/statistics.h"

namespace headrace::bench::cuda {

TimedGraph::TimedGraph(std::int32_t num_calls, const Call& call) : num_calls_(num_calls) {
  cudaStream_t stream;
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  stream_.reset(stream);
  cudaEvent_t event;
  check(cudaEventCreate(&event), "cudaEventCreate");
  begin_.reset(event);
  check(cudaEventCreate(&event), "cudaEventCreate");
  end_.reset(event);

  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
  for (std::int32_t i = 0; i < num_calls; ++i) call(i, stream);
  cudaGraph_t captured;
  check(cudaStreamEndCapture(stream, &captured), "cudaStreamEndCapture");
  const Owned<cudaGraph_t, cudaGraphDestroy> graph(captured);
  cudaGraphExec_t executable;
  check(cudaGraphInstantiate(&executable, captured, 0), "cudaGraphInstantiate");
  executable_.reset(executable);
  constexpr int kWarmUps = 3;
  for (int i = 0; i < kWarmUps; ++i) replay_us();
}

double TimedGraph::replay_us() {
  check(cudaEventRecord(begin_.get(), stream_.get()), "cudaEventRecord");
  check(cudaGraphLaunch(executable_.get(), stream_.get()), "cudaGraphLaunch");
  check(cudaEventRecord(end_.get(), stream_.get()), "cudaEventRecord");
  check(cudaEventSynchronize(end_.get()), "run");
  float ms = 0;
  check(cudaEventElapsedTime(&ms, begin_.get(), end_.get()), "cudaEventElapsedTime");
  return 1e3 * ms;
}

double TimedGraph::call_us(std::int32_t replays) {
  std::vector<double> times_us;
  for (std::int32_t i = 0; i < replays; ++i) times_us.push_back(replay_us());
  return quantile(times_us, 0.5) / num_calls_;
}

}  // namespace headrace::bench::cuda
