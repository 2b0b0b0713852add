#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cmath>
#include <vector>

#include "bench/cuda/device.h"
#include "bench/cuda/reference.h"

namespace headrace::bench::cuda {
namespace {

constexpr int kHeadDim = 128;
constexpr int kThreads = 256;

__device__ std::uint32_t mix(std::uint64_t x) {  // a bijection of 64 bits, its low half
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return static_cast<std::uint32_t>(x ^ (x >> 33));
}

template <typename T>
__global__ void fill(T* data, std::int64_t begin, std::int64_t end, std::uint64_t seed) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = begin + std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < end;
       i += step) {
    const float radius_bits = (mix((seed << 40) + 2 * i + 1) + 1.0f) * 0x1p-32f;
    const float angle = mix((seed << 40) + 2 * i + 2) * 0x1p-31f;  // in half turns
    data[i] = T(sqrtf(-2.0f * logf(fminf(radius_bits, 1.0f))) * cospif(angle));
  }
}

__device__ double load(const void* data, std::int64_t i, headrace_dtype dtype) {
  switch (dtype) {
    case HEADRACE_BFLOAT16:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]);
    case HEADRACE_FLOAT16:
      return __half2float(static_cast<const __half*>(data)[i]);
    case HEADRACE_FLOAT32:
      return static_cast<const float*>(data)[i];
    default:
      return static_cast<float>(static_cast<const __nv_fp8_e4m3*>(data)[i]);
  }
}

template <typename Combine>
__device__ double combine_block(double value, double* scratch, const Combine& combine) {
  scratch[threadIdx.x] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      scratch[threadIdx.x] = combine(scratch[threadIdx.x], scratch[threadIdx.x + half]);
    }
    __syncthreads();
  }
  const double result = scratch[0];
  __syncthreads();
  return result;
}

// One block per row.
__global__ void attend(headrace_attention_desc desc, headrace_run_args args,
                       const RequestHead* rows, const std::int64_t* first_score, double* all_scores,
                       double* out) {
  __shared__ double scratch[kThreads];
  const auto [request, head] = rows[blockIdx.x];
  const int kv_head = head / (desc.num_qo_heads / desc.num_kv_heads);
  const int len = args.seq_lens[request];
  const bool nhd = desc.layout == HEADRACE_NHD;
  const std::int64_t token_stride = nhd ? desc.num_kv_heads * kHeadDim : kHeadDim;
  const std::int64_t head_stride = nhd ? kHeadDim : std::int64_t{desc.page_size} * kHeadDim;
  const std::int64_t page_stride = std::int64_t{desc.page_size} * desc.num_kv_heads * kHeadDim;
  const std::int32_t* pages = args.block_table + request * args.block_table_stride;
  const auto offset = [&](int token) {
    return pages[token / desc.page_size] * page_stride + token % desc.page_size * token_stride +
           kv_head * head_stride;
  };
  double* scores = all_scores + first_score[blockIdx.x];
  const std::int64_t q_row = std::int64_t{request} * desc.num_qo_heads + head;
  const double k_scale = args.k_scale != nullptr ? args.k_scale[kv_head] : 1.0;
  const double v_scale = args.v_scale != nullptr ? args.v_scale[kv_head] : 1.0;

  double largest = -INFINITY;
  for (int token = threadIdx.x; token < len; token += kThreads) {
    double dot = 0;
    for (int d = 0; d < kHeadDim; ++d) {
      dot += load(args.q, q_row * kHeadDim + d, desc.q_dtype) *
             load(args.k_cache, offset(token) + d, desc.kv_dtype);
    }
    scores[token] = dot * desc.sm_scale * k_scale;
    largest = fmax(largest, scores[token]);
  }
  largest = combine_block(largest, scratch, [](double a, double b) { return fmax(a, b); });
  double sum = 0;
  for (int token = threadIdx.x; token < len; token += kThreads) {
    scores[token] = exp(scores[token] - largest);
    sum += scores[token];
  }
  sum = combine_block(sum, scratch, [](double a, double b) { return a + b; });

  const int d = threadIdx.x % kHeadDim;
  double value = 0;
  for (int token = threadIdx.x / kHeadDim; token < len; token += kThreads / kHeadDim) {
    value += scores[token] * load(args.v_cache, offset(token) + d, desc.kv_dtype);
  }
  scratch[threadIdx.x] = value;
  __syncthreads();
  if (threadIdx.x < kHeadDim) {
    out[std::int64_t{blockIdx.x} * kHeadDim + d] =
        len > 0 ? (scratch[d] + scratch[d + kHeadDim]) / sum * v_scale : 0.0;
  }
}

}  // namespace

void fill_normal(void* data, std::int64_t begin, std::int64_t end, headrace_dtype dtype,
                 std::uint64_t seed) {
  constexpr int kBlocks = 1024;
  switch (dtype) {
    case HEADRACE_BFLOAT16:
      fill<<<kBlocks, kThreads>>>(static_cast<__nv_bfloat16*>(data), begin, end, seed);
      break;
    case HEADRACE_FLOAT16:
      fill<<<kBlocks, kThreads>>>(static_cast<__half*>(data), begin, end, seed);
      break;
    case HEADRACE_FLOAT32:
      fill<<<kBlocks, kThreads>>>(static_cast<float*>(data), begin, end, seed);
      break;
    case HEADRACE_FLOAT8_E4M3:
      fill<<<kBlocks, kThreads>>>(static_cast<__nv_fp8_e4m3*>(data), begin, end, seed);
      break;
  }
  check(cudaGetLastError(), "fill");
}

std::vector<double> reference(const headrace_attention_desc& desc, const headrace_run_args& args,
                              std::span<const RequestHead> rows) {
  std::vector<std::int32_t> seq_lens(static_cast<std::size_t>(args.num_requests));
  check(cudaMemcpy(seq_lens.data(), args.seq_lens, seq_lens.size() * sizeof(std::int32_t),
                   cudaMemcpyDeviceToHost),
        "download");
  std::vector<std::int64_t> first_score;
  std::int64_t num_scores = 0;
  for (const RequestHead& row : rows) {
    first_score.push_back(num_scores);
    num_scores += seq_lens[static_cast<std::size_t>(row.request)];
  }
  const Array<RequestHead> device_rows{rows};
  const Array<std::int64_t> device_first_score{std::span<const std::int64_t>(first_score)};
  const Array<double> scores(static_cast<std::size_t>(num_scores));
  const Array<double> out(rows.size() * kHeadDim);
  attend<<<static_cast<unsigned>(rows.size()), kThreads>>>(
      desc, args, device_rows.data(), device_first_score.data(), scores.data(), out.data());
  check(cudaGetLastError(), "reference");
  return out.download();
}

}  // namespace headrace::bench::cuda
