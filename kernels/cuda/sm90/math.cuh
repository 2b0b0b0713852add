// What one math warp does with one stage: S = K Q, online softmax, O += V P. Tokens are the rows of
// the first product and the contraction of the second; query heads are the columns of both, so that
// each lane sees the same two heads (of every eight) throughout: 2 * (lane % 4) and the next.
#pragma once

#include <cmath>

#include "kernels/cuda/ptx/convert.cuh"
#include "kernels/cuda/ptx/matrix.cuh"
#include "kernels/cuda/ptx/mbarrier.cuh"
#include "kernels/cuda/sm90/smem.cuh"

namespace headrace::cuda::sm90 {

inline constexpr int kDimSteps = kHeadDim / 16;

// The queries of one item, as B operands of the first product.
template <class Config>
struct QueryFragments {
  std::uint32_t b[Config::kHeadTiles][kDimSteps][2];
  float scale[Config::kHeadTiles][2];  // of the scores of this lane's heads, log2(e) included
};

// A warp's running result over the stages it has seen.
template <class Config>
struct RunningResult {
  float o[Config::kHeadTiles][kDimSteps][4];
  // What probabilities, O and sum are relative to: kProbabilityShift below the largest score. The
  // same in all lanes of a column.
  float max[Config::kHeadTiles][2];
  float sum[Config::kHeadTiles][2];  // of this lane's tokens only

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int h = 0; h < Config::kHeadTiles; ++h) {
#pragma unroll
      for (int i = 0; i < kDimSteps; ++i) {
#pragma unroll
        for (int e = 0; e < 4; ++e) o[h][i][e] = 0.0f;
      }
      max[h][0] = max[h][1] = -INFINITY;
      sum[h][0] = sum[h][1] = 0.0f;
    }
  }
};

// Probabilities of one tile, as B operands of the second product; the second part, if any, is what
// rounding the first one lost.
template <class Config>
struct Probabilities {
  std::uint32_t b[Config::kHeadTiles][Config::kProbabilityParts][2];
};

// Reads the queries of an item slot. With an fp8 cache the contraction runs over d in another order
// (see KeyFragments), and queries become fp16: a power of two per head brings the largest between
// 2^8 and 2^9, so that nothing overflows and the eight bits of bf16 survive.
template <class Config>
__device__ __forceinline__ void load_queries(const SharedStorage<Config>& shared,
                                             std::uint32_t slot, float score_scale,
                                             QueryFragments<Config>& queries) {
  using Query = typename Config::QueryElement;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int h = 0; h < Config::kHeadTiles; ++h) {
    const Query* row = shared.q[slot][8 * h + lane / 4];
    if constexpr (!Config::kFp8) {
#pragma unroll
      for (int k = 0; k < kDimSteps; ++k) {
        const auto* pairs = reinterpret_cast<const std::uint32_t*>(row) + 8 * k + lane % 4;
        queries.b[h][k][0] = pairs[0];
        queries.b[h][k][1] = pairs[4];
      }
      queries.scale[h][0] = queries.scale[h][1] = score_scale;
    } else {
      float largest = 0.0f;
#pragma unroll
      for (int k = 0; k < kDimSteps; ++k) {
        const uint2 four = *reinterpret_cast<const uint2*>(row + 16 * k + 4 * (lane % 4));
        queries.b[h][k][0] = four.x;
        queries.b[h][k][1] = four.y;
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const float2 q = ptx::unpack<Query>(queries.b[h][k][e]);
          largest = fmaxf(largest, fmaxf(fabsf(q.x), fabsf(q.y)));
        }
      }
      largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 2));
      // Exponent field of the largest: 2^(8 - exponent) and its inverse, kept within normal floats.
      const int exponent = min(max(static_cast<int>(__float_as_uint(largest) >> 23), 16), 254);
      const float shrink = __uint_as_float((262 - exponent) << 23);
      const float grow = __uint_as_float((exponent - 8) << 23);
#pragma unroll
      for (int k = 0; k < kDimSteps; ++k) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const float2 q = ptx::unpack<Query>(queries.b[h][k][e]);
          queries.b[h][k][e] = ptx::pack<__half>(q.x * shrink, q.y * shrink);
        }
      }
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int owner =
            4 * (2 * (lane % 4) + j);  // a lane that holds this column's head as a row
        queries.scale[h][j] = score_scale * __shfl_sync(kAllLanes, grow, owner);
      }
    }
  }
}

// Shared-memory addresses of fragment loads within a stage. Rows of 128 bytes; a box holds one
// (fp8) or two (16-bit) rows per token, first all first halves, then all second halves.
template <class Config>
struct StageAddresses {
  std::uint32_t key_row;    // of this lane's token in a tile, for ldmatrix of K
  std::uint32_t value_row;  // the same for V
  std::uint32_t key_chunk;  // 16-byte chunk, exclusive-or pattern included
  std::uint32_t value_chunk;
  std::uint32_t half_bytes;  // distance of the second half
  std::uint32_t box_tokens;

  __device__ explicit StageAddresses(int box) {
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t row = lane % 8;
    const std::uint32_t second = (lane / 8) % 2;  // matrices 1 and 3
    const std::uint32_t upper = lane / 16;        // matrices 2 and 3
    // 16-bit V: matrices 0 to 3 are (token 0, d 0), (token 0, d 8), (token 8, d 0), (token 8, d 8).
    // K, and V in fp8: (token 0, chunk 0), (token 8, chunk 0), (token 0, chunk 1), (token 8, chunk
    // 1).
    key_row = row + 8 * second;
    key_chunk = (upper ^ row) << 4;
    value_row = Config::kFp8 ? key_row : row + 8 * upper;
    value_chunk = Config::kFp8 ? key_chunk : (second ^ row) << 4;
    half_bytes = box * 128;
    box_tokens = box;
  }

  // Byte offset of token `token` of the stage, first half.
  __device__ __forceinline__ std::uint32_t row_offset(std::uint32_t token) const {
    if constexpr (Config::kHalves == 1) return token * 128;
    return (token + (token & (0u - box_tokens))) * 128;
  }

  // Two chunks from 2 * `pair` on: 16 elements of 16 bits, or 32 of fp8.
  __device__ __forceinline__ std::uint32_t key(std::uint32_t base, int tile, int pair) const {
    return base + row_offset(16 * tile + key_row) + (pair / 4) * half_bytes +
           (((pair % 4) << 5) ^ key_chunk);
  }
  __device__ __forceinline__ std::uint32_t value(std::uint32_t base, int tile, int pair) const {
    return base + row_offset(16 * tile + value_row) + (pair / 4) * half_bytes +
           (((pair % 4) << 5) ^ value_chunk);
  }
};

// S [16 tokens, 8 heads per head tile] of one tile of a stage.
template <class Config>
__device__ __forceinline__ void multiply_keys(const StageAddresses<Config>& addresses,
                                              std::uint32_t base, int tile,
                                              const QueryFragments<Config>& queries,
                                              float (&s)[Config::kHeadTiles][4]) {
  using Math = typename Config::MathElement;
#pragma unroll
  for (int h = 0; h < Config::kHeadTiles; ++h) {
#pragma unroll
    for (int e = 0; e < 4; ++e) s[h][e] = 0.0f;
  }
  if constexpr (!Config::kFp8) {
#pragma unroll
    for (int k = 0; k < kDimSteps; ++k) {
      std::uint32_t a[4];
      ptx::load_matrix_x4(a, addresses.key(base, tile, k));
#pragma unroll
      for (int h = 0; h < Config::kHeadTiles; ++h) {
        ptx::multiply_accumulate<Math>(s[h], a, queries.b[h][k]);
      }
    }
  } else {
    // A register of ldmatrix holds four neighbouring d of one token. The low two serve as
    // contraction indices 2j and 2j + 1, the high two as 2j + 8 and 2j + 9; the queries are loaded
    // to match.
#pragma unroll
    for (int pair = 0; pair < kDimSteps / 2; ++pair) {
      std::uint32_t bytes[4];
      ptx::load_matrix_x4(bytes, addresses.key(base, tile, pair));
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const std::uint32_t a[4] = {
            ptx::widen_e4m3x2(bytes[2 * c]), ptx::widen_e4m3x2(bytes[2 * c + 1]),
            ptx::widen_e4m3x2_high(bytes[2 * c]), ptx::widen_e4m3x2_high(bytes[2 * c + 1])};
#pragma unroll
        for (int h = 0; h < Config::kHeadTiles; ++h) {
          ptx::multiply_accumulate<Math>(s[h], a, queries.b[h][2 * pair + c]);
        }
      }
    }
  }
}

// O [128 d, 8 heads per head tile] += V P for one tile of a stage. With a 16-bit cache a lane's
// rows of step i are d = 16 i + lane / 4 and that + 8; with fp8, 16 i + 2 (lane / 4) and that + 1.
template <class Config>
__device__ __forceinline__ void multiply_values(const StageAddresses<Config>& addresses,
                                                std::uint32_t base, int tile,
                                                const Probabilities<Config>& p,
                                                RunningResult<Config>& result) {
  using Math = typename Config::MathElement;
  if constexpr (!Config::kFp8) {
#pragma unroll
    for (int i = 0; i < kDimSteps; ++i) {
      std::uint32_t a[4];
      ptx::load_matrix_x4_transposed(a, addresses.value(base, tile, i));
#pragma unroll
      for (int h = 0; h < Config::kHeadTiles; ++h) {
#pragma unroll
        for (int part = 0; part < Config::kProbabilityParts; ++part) {
          ptx::multiply_accumulate<Math>(result.o[h][i], a, p.b[h][part]);
        }
      }
    }
  } else {
    // A transposed register holds d and d + 1 of token 2j, then of token 2j + 1. Gathering bytes 0
    // and 2, 1 and 3 pairs the tokens: the even d becomes row r, the odd one row r + 8.
#pragma unroll
    for (int pair = 0; pair < kDimSteps / 2; ++pair) {
      std::uint32_t bytes[4];
      ptx::load_matrix_x4_transposed(bytes, addresses.value(base, tile, pair));
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const std::uint32_t first = __byte_perm(bytes[2 * c], 0, 0x3120);
        const std::uint32_t second = __byte_perm(bytes[2 * c + 1], 0, 0x3120);
        const std::uint32_t a[4] = {ptx::widen_e4m3x2(first), ptx::widen_e4m3x2_high(first),
                                    ptx::widen_e4m3x2(second), ptx::widen_e4m3x2_high(second)};
#pragma unroll
        for (int h = 0; h < Config::kHeadTiles; ++h) {
          ptx::multiply_accumulate<Math>(result.o[h][2 * pair + c], a, p.b[h][0]);
        }
      }
    }
  }
}

// Online softmax over the scores of a stage: scales and masks s, updates max and sum, rescales O
// when the max of any head grows, and leaves the probabilities in p. The sum is of the
// probabilities before rounding, so that the log-sum-exp is exact.
template <class Config>
__device__ __forceinline__ void softmax(float (&s)[Config::kStageTiles][Config::kHeadTiles][4],
                                        const QueryFragments<Config>& queries, int valid_tokens,
                                        RunningResult<Config>& result,
                                        Probabilities<Config> (&p)[Config::kStageTiles]) {
  using Math = typename Config::MathElement;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int h = 0; h < Config::kHeadTiles; ++h) {
    float largest[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int t = 0; t < Config::kStageTiles; ++t) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int token = 16 * t + lane / 4 + 8 * (e / 2);
        const float score = s[t][h][e] * queries.scale[h][e % 2];
        s[t][h][e] = token < valid_tokens ? score : -INFINITY;
        largest[e % 2] = fmaxf(largest[e % 2], s[t][h][e]);
      }
    }
    float max[2];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
#pragma unroll
      for (int offset = 4; offset < 32; offset *= 2) {
        largest[j] = fmaxf(largest[j], __shfl_xor_sync(kAllLanes, largest[j], offset));
      }
      max[j] = fmaxf(result.max[h][j], largest[j] - Config::kProbabilityShift);
    }
    if (__any_sync(kAllLanes, max[0] > result.max[h][0] || max[1] > result.max[h][1])) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const float factor = ptx::exp2_approximate(result.max[h][j] - max[j]);
        result.max[h][j] = max[j];
        result.sum[h][j] *= factor;
#pragma unroll
        for (int i = 0; i < kDimSteps; ++i) {
          result.o[h][i][j] *= factor;
          result.o[h][i][j + 2] *= factor;
        }
      }
    }
    // Added up on their own first: single ones may be too small to move a large sum.
    float stage_sum[2] = {0.0f, 0.0f};
#pragma unroll
    for (int t = 0; t < Config::kStageTiles; ++t) {
#pragma unroll
      for (int rows = 0; rows < 2; ++rows) {
        const float first = ptx::exp2_approximate(s[t][h][2 * rows] - max[0]);
        const float second = ptx::exp2_approximate(s[t][h][2 * rows + 1] - max[1]);
        stage_sum[0] += first;
        stage_sum[1] += second;
        const std::uint32_t pair = ptx::pack<Math>(first, second);
        p[t].b[h][0][rows] = ptx::transpose_matrix(pair);
        if constexpr (Config::kSplitProbabilities) {
          const float2 rounded = ptx::unpack<Math>(pair);
          p[t].b[h][1][rows] =
              ptx::transpose_matrix(ptx::pack<Math>(first - rounded.x, second - rounded.y));
        }
      }
    }
    result.sum[h][0] += stage_sum[0];
    result.sum[h][1] += stage_sum[1];
  }
}

// Values of tokens that do not count become zero in place: 0 x NaN would be NaN.
template <class Config>
__device__ __forceinline__ void clear_values(const StageAddresses<Config>& addresses,
                                             unsigned char* stage, int valid_tokens) {
  const int lane = threadIdx.x % 32;
  constexpr int kChunks = Config::kRowBytes / 16;
  for (int i = valid_tokens * kChunks + lane; i < Config::kStageTokens * kChunks; i += 32) {
    const int chunk = i % kChunks;
    unsigned char* row = stage + addresses.row_offset(i / kChunks);
    *reinterpret_cast<uint4*>(row + (chunk / 8) * addresses.half_bytes + (chunk % 8) * 16) =
        uint4{0, 0, 0, 0};
  }
  ptx::fence_proxy_async();  // the copy engine writes here next
  __syncwarp();
}

// One stage that has arrived.
template <class Config>
__device__ __forceinline__ void attend_stage(const StageAddresses<Config>& addresses,
                                             SharedStorage<Config>& shared, std::uint32_t slot,
                                             int valid_tokens,
                                             const QueryFragments<Config>& queries,
                                             RunningResult<Config>& result) {
  if (valid_tokens < Config::kStageTokens) clear_values(addresses, shared.v[slot], valid_tokens);
  const std::uint32_t k = ptx::shared_address(shared.k[slot]);
  const std::uint32_t v = ptx::shared_address(shared.v[slot]);
  float s[Config::kStageTiles][Config::kHeadTiles][4];
#pragma unroll
  for (int t = 0; t < Config::kStageTiles; ++t) multiply_keys(addresses, k, t, queries, s[t]);
  Probabilities<Config> p[Config::kStageTiles];
  softmax<Config>(s, queries, valid_tokens, result, p);
#pragma unroll
  for (int t = 0; t < Config::kStageTiles; ++t) multiply_values(addresses, v, t, p[t], result);
}

}  // namespace headrace::cuda::sm90
