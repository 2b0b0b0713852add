// Every instantiation of the kernel, and the table that finds them.
#include "kernels/cuda/decode_kernel.h"
#include "kernels/cuda/sm90/decode.cuh"

namespace headrace::cuda {
namespace {

struct TableRow {
  kernels::DType q;
  kernels::DType kv;
  std::int32_t max_group;  // the narrowest kernel that holds the group in one pass, or the last
  DecodeKernel kernel;
};

template <class Query, class Cache, int HeadTiles>
constexpr DecodeKernel describe() {
  using Config = sm90::DecodeConfig<Query, Cache, HeadTiles>;
  static_assert(sizeof(sm90::SharedStorage<Config>) <= 227 * 1024);
  return {&sm90::decode<Config>, Config::kThreads, sizeof(sm90::SharedStorage<Config>),
          Config::kStageTokens, Config::kBlocksPerSm};
}

using kernels::DType;
using Bf16 = __nv_bfloat16;
using Fp16 = __half;
using Fp8 = __nv_fp8_e4m3;

constexpr TableRow kTable[] = {
    {DType::kBFloat16, DType::kBFloat16, 8, describe<Bf16, Bf16, 1>()},
    {DType::kBFloat16, DType::kBFloat16, INT32_MAX, describe<Bf16, Bf16, 2>()},
    {DType::kBFloat16, DType::kFloat8E4M3, 8, describe<Bf16, Fp8, 1>()},
    {DType::kBFloat16, DType::kFloat8E4M3, INT32_MAX, describe<Bf16, Fp8, 2>()},
    {DType::kFloat16, DType::kFloat16, 8, describe<Fp16, Fp16, 1>()},
    {DType::kFloat16, DType::kFloat16, INT32_MAX, describe<Fp16, Fp16, 2>()},
    {DType::kFloat16, DType::kFloat8E4M3, 8, describe<Fp16, Fp8, 1>()},
    {DType::kFloat16, DType::kFloat8E4M3, INT32_MAX, describe<Fp16, Fp8, 2>()},
};

}  // namespace

const DecodeKernel* find_decode_kernel(DType q, DType kv, std::int32_t group) {
  for (const TableRow& row : kTable) {
    if (row.q == q && row.kv == kv && group <= row.max_group) return &row.kernel;
  }
  return nullptr;
}

}  // namespace headrace::cuda
