// Every instantiation of the kernel, and the table that finds them.
#include "kernels/cuda/decode_kernel.h"
#include "kernels/cuda/sm90/decode.cuh"

namespace headrace::cuda {
namespace {

using kernels::DType;

template <class Query, class Cache, int HeadTiles>
constexpr DecodeKernel describe(DType q, DType kv) {
  using Config = sm90::DecodeConfig<Query, Cache, HeadTiles>;
  static_assert(sizeof(sm90::SharedStorage<Config>) <= 227 * 1024);
  return {q,
          kv,
          Config::kPassHeads,
          &sm90::decode<Config>,
          Config::kThreads,
          sizeof(sm90::SharedStorage<Config>),
          Config::kStageTokens};
}

// For each pair of types the narrowest first.
constexpr DecodeKernel kKernels[] = {
    describe<__nv_bfloat16, __nv_bfloat16, 1>(DType::kBFloat16, DType::kBFloat16),
    describe<__nv_bfloat16, __nv_bfloat16, 2>(DType::kBFloat16, DType::kBFloat16),
    describe<__nv_bfloat16, __nv_fp8_e4m3, 1>(DType::kBFloat16, DType::kFloat8E4M3),
    describe<__nv_bfloat16, __nv_fp8_e4m3, 2>(DType::kBFloat16, DType::kFloat8E4M3),
    describe<__half, __half, 1>(DType::kFloat16, DType::kFloat16),
    describe<__half, __half, 2>(DType::kFloat16, DType::kFloat16),
    describe<__half, __nv_fp8_e4m3, 1>(DType::kFloat16, DType::kFloat8E4M3),
    describe<__half, __nv_fp8_e4m3, 2>(DType::kFloat16, DType::kFloat8E4M3),
};

}  // namespace

std::span<const DecodeKernel> decode_kernels() { return kKernels; }

const DecodeKernel* find_decode_kernel(DType q, DType kv, std::int32_t group) {
  const DecodeKernel* found = nullptr;
  for (const DecodeKernel& kernel : kKernels) {
    if (kernel.q != q || kernel.kv != kv) continue;
    found = &kernel;
    if (group <= kernel.max_group) break;
  }
  return found;
}

}  // namespace headrace::cuda
