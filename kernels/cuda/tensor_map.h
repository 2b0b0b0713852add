// Tensor maps of paged pools: how the copy engine sees them.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "kernels/decode_params.h"

namespace headrace::cuda {

// The driver's encoder, found at run time so that nothing links libcuda; null if there is no
// driver.
using TensorMapEncoder = decltype(&cuTensorMapEncodeTiled);
TensorMapEncoder find_tensor_map_encoder();

// Describes a pool [num_pages, page_size, num_kv_heads, 128] with the strides of params (any order)
// as 5-D: (element of a 128-byte piece, token, piece, KV head, page). One box is box_tokens rows of
// one head of one page, 128-byte swizzle. Pages and tokens outside arrive as zeros.
CUresult encode_pool_map(TensorMapEncoder encode, const kernels::PagedPool& pool,
                         const kernels::DecodeParams& params, std::int32_t box_tokens,
                         CUtensorMap* map);

}  // namespace headrace::cuda
