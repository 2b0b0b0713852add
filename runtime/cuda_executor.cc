#include "runtime/cuda_executor.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/cuda/decode_kernel.h"
#include "kernels/cuda/tensor_map.h"
#include "runtime/argument_checks.h"
#include "runtime/cuda_status.h"
#include "runtime/status.h"
#include "runtime/validate.h"

namespace headrace::runtime {
namespace {

// The copy engine's unit: addresses and strides of what it brings are multiples of this.
constexpr std::int64_t kCopyBytes = 16;
// Outputs are written eight bytes at a time.
constexpr std::int64_t kStoreBytes = 8;

// Makes a device current for a scope.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    if (cudaGetDevice(&previous_) == cudaSuccess && previous_ != device) {
      changed_ = cudaSetDevice(device) == cudaSuccess;
    }
  }
  ~CurrentDevice() {
    if (changed_) cudaSetDevice(previous_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int previous_ = 0;
  bool changed_ = false;
};

// Uploads plans from pinned memory, one asynchronous copy each. Several staging buffers, because a
// plan may be made while the stream has not got to the copy of the one before.
class CudaPlanBuffer final : public PlanBuffer {
 public:
  CudaPlanBuffer(int device, void* buffer, const scheduler::PlanLayout& layout)
      : device_(device), buffer_(static_cast<std::byte*>(buffer)), layout_(layout) {}

  ~CudaPlanBuffer() override {
    const CurrentDevice current(device_);
    for (Staging& staging : staging_) {
      if (staging.copied != nullptr) {
        cudaEventSynchronize(staging.copied);
        cudaEventDestroy(staging.copied);
      }
      cudaFreeHost(staging.memory);
    }
  }

  headrace_status initialise() {
    const CurrentDevice current(device_);
    for (Staging& staging : staging_) {
      void* memory = nullptr;
      HEADRACE_RETURN_IF_CUDA_FAILS(cudaHostAlloc, &memory,
                                    layout_.total_bytes - layout_.header_offset,
                                    cudaHostAllocDefault);
      staging.memory = static_cast<std::byte*>(memory);
      HEADRACE_RETURN_IF_CUDA_FAILS(cudaEventCreateWithFlags, &staging.copied,
                                    cudaEventDisableTiming);
    }
    // Control words, and a header that says there are no items.
    HEADRACE_RETURN_IF_CUDA_FAILS(cudaMemset, buffer_, 0,
                                  layout_.header_offset + sizeof(scheduler::PlanHeader));
    // The memset may still be under way, and later uploads come on streams that do not wait for it.
    HEADRACE_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize, cudaStreamLegacy);
    return HEADRACE_OK;
  }

  headrace_status publish(const scheduler::PlanHeader& header,
                          std::span<const scheduler::WorkItem> items,
                          void* stream) noexcept override {
    const CurrentDevice current(device_);
    Staging& staging = staging_[next_];
    next_ = (next_ + 1) % kStagings;
    HEADRACE_RETURN_IF_CUDA_FAILS(cudaEventSynchronize, staging.copied);
    std::memcpy(staging.memory, &header, sizeof(header));
    std::memcpy(staging.memory + sizeof(header), items.data(), items.size_bytes());
    HEADRACE_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync, buffer_ + layout_.header_offset, staging.memory,
                                  sizeof(header) + items.size_bytes(), cudaMemcpyHostToDevice,
                                  static_cast<cudaStream_t>(stream));
    HEADRACE_RETURN_IF_CUDA_FAILS(cudaEventRecord, staging.copied,
                                  static_cast<cudaStream_t>(stream));
    return HEADRACE_OK;
  }

  scheduler::PlanView view() const noexcept override {
    return scheduler::plan_view(buffer_, layout_);
  }

 private:
  struct Staging {
    std::byte* memory = nullptr;   // pinned: header and items
    cudaEvent_t copied = nullptr;  // recorded after the copy that reads it
  };
  // As many plans may wait for a blocked stream; one more waits on the host.
  static constexpr std::size_t kStagings = 4;

  int device_;
  std::byte* buffer_;
  scheduler::PlanLayout layout_;
  std::array<Staging, kStagings> staging_;
  std::size_t next_ = 0;
};

class CudaExecutor final : public Executor {
 public:
  CudaExecutor(int device, const cudaDeviceProp& properties, std::uint32_t num_workers,
               cuda::TensorMapEncoder encode)
      : device_(device),
        num_workers_(num_workers),
        encode_(encode),
        description_(fmt::format("CUDA device {}, {}, {} blocks on {} SMs", device, properties.name,
                                 num_workers, properties.multiProcessorCount)) {}

  headrace_device device() const override { return HEADRACE_DEVICE_CUDA; }
  std::uint32_t num_workers() const override { return num_workers_; }
  std::string describe() const override { return description_; }

  headrace_status check_description(const Description& desc) const noexcept override {
    if (cuda::find_decode_kernel(desc.q_dtype, desc.kv_dtype, desc.group) == nullptr) {
      return fail(
          HEADRACE_UNSUPPORTED,
          "desc.q_dtype {} with desc.kv_dtype {}: needed on CUDA: q bf16 or fp16, and kv the "
          "same or fp8 e4m3",
          static_cast<int>(desc.q_dtype), static_cast<int>(desc.kv_dtype));
    }
    if (desc.out_dtype == kernels::DType::kFloat32) {
      return fail(HEADRACE_UNSUPPORTED,
                  "desc.out_dtype is HEADRACE_FLOAT32; needed on CUDA: bf16 or fp16");
    }
    if (desc.head_dim != cuda::kHeadDim) {
      return fail(HEADRACE_UNSUPPORTED, "desc.head_dim is {}; needed on CUDA: {}", desc.head_dim,
                  cuda::kHeadDim);
    }
    if (desc.page_size % cuda::kPageMultiple != 0) {
      return fail(HEADRACE_UNSUPPORTED, "desc.page_size is {}; needed on CUDA: a multiple of {}",
                  desc.page_size, cuda::kPageMultiple);
    }
    const auto kv_bytes = static_cast<std::int64_t>(kernels::dtype_bytes(desc.kv_dtype));
    const auto q_bytes = static_cast<std::int64_t>(kernels::dtype_bytes(desc.q_dtype));
    const auto out_bytes = static_cast<std::int64_t>(kernels::dtype_bytes(desc.out_dtype));
    const struct {
      const char* name;
      std::int64_t elements;
      std::int64_t element_bytes;
      std::int64_t unit;
    } strides[] = {
        {"desc.k_page_stride", desc.k.page, kv_bytes, kCopyBytes},
        {"desc.k_token_stride", desc.k.token, kv_bytes, kCopyBytes},
        {"desc.k_head_stride", desc.k.head, kv_bytes, kCopyBytes},
        {"desc.v_page_stride", desc.v.page, kv_bytes, kCopyBytes},
        {"desc.v_token_stride", desc.v.token, kv_bytes, kCopyBytes},
        {"desc.v_head_stride", desc.v.head, kv_bytes, kCopyBytes},
        {"desc.q_request_stride", desc.q.request, q_bytes, kCopyBytes},
        {"desc.q_head_stride", desc.q.head, q_bytes, kCopyBytes},
        {"desc.out_request_stride", desc.out.request, out_bytes, kStoreBytes},
        {"desc.out_head_stride", desc.out.head, out_bytes, kStoreBytes},
    };
    for (const auto& stride : strides) {
      if (stride.elements * stride.element_bytes % stride.unit != 0) {
        return fail(HEADRACE_UNSUPPORTED,
                    "{} is {} elements; needed on CUDA: a multiple of {} elements", stride.name,
                    stride.elements, stride.unit / stride.element_bytes);
      }
    }
    return HEADRACE_OK;
  }

  Alignments alignments(const Description&) const noexcept override {
    return {kCopyBytes, kCopyBytes, kStoreBytes};
  }

  std::int32_t kv_heads_per_item(const Description&) const noexcept override { return 1; }

  host::CostModel cost_model(const Description& desc) const noexcept override {
    // Measured on an H200: an SM's part of the memory's rate is some 35 GB/s, and an item costs
    // about 1 us beyond its bytes (see bench/RESULTS.md).
    constexpr double kBytesPerUs = 35000;
    const double token_bytes =
        2.0 * desc.head_dim * static_cast<double>(kernels::dtype_bytes(desc.kv_dtype));
    return {.token_us = token_bytes / kBytesPerUs,
            .item_us = 1.0,
            .min_split_tokens = 128,
            .dynamic_fraction = 0.05};
  }

  std::size_t workspace_bytes(const Description& desc,
                              const scheduler::PlanCapacity& capacity) const noexcept override {
    return capacity.max_partials * sizeof(float) *
           kernels::partial_floats(static_cast<std::size_t>(desc.group),
                                   static_cast<std::size_t>(desc.head_dim));
  }

  headrace_status make_plan_buffer(void* buffer, const scheduler::PlanLayout& layout,
                                   const scheduler::PlanCapacity& /*capacity*/,
                                   std::unique_ptr<PlanBuffer>& plan_buffer) const override {
    auto created = std::make_unique<CudaPlanBuffer>(device_, buffer, layout);
    const headrace_status status = created->initialise();
    if (status == HEADRACE_OK) plan_buffer = std::move(created);
    return status;
  }

  headrace_status validate(const kernels::DecodeParams& params, void* stream) const override {
    const CurrentDevice current(device_);
    const auto cuda_stream = static_cast<cudaStream_t>(stream);
    std::vector<std::int32_t> lens(static_cast<std::size_t>(params.num_requests));
    HEADRACE_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync, lens.data(), params.seq_lens,
                                  lens.size() * sizeof(lens[0]), cudaMemcpyDeviceToHost,
                                  cuda_stream);
    HEADRACE_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize, cuda_stream);

    // Rows are copied as far as they are listed, and no further than the longest of them here.
    std::int64_t longest = 1;
    const auto listed = [&](std::size_t request) {
      const std::int64_t len = std::max(lens[request], 0);
      return std::min((len + params.page_size - 1) / params.page_size, params.block_table_stride);
    };
    for (std::size_t r = 0; r < lens.size(); ++r) longest = std::max(longest, listed(r));
    std::vector<std::int32_t> table(lens.size() * static_cast<std::size_t>(longest));
    for (std::size_t r = 0; r < lens.size(); ++r) {
      if (listed(r) == 0) continue;
      HEADRACE_RETURN_IF_CUDA_FAILS(
          cudaMemcpyAsync, table.data() + r * static_cast<std::size_t>(longest),
          params.block_table + static_cast<std::int64_t>(r) * params.block_table_stride,
          static_cast<std::size_t>(listed(r)) * sizeof(table[0]), cudaMemcpyDeviceToHost,
          cuda_stream);
    }
    HEADRACE_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize, cuda_stream);
    return validate_tables({.seq_lens = lens,
                            .table = table.data(),
                            .row_distance = longest,
                            .row_entries = params.block_table_stride,
                            .page_size = params.page_size,
                            .num_pages = params.num_pages});
  }

  headrace_status run(kernels::DecodeParams params, const PlanBuffer& plan,
                      const scheduler::PlanCapacity& /*capacity*/, void* workspace,
                      const Launch& launch) noexcept override {
    const CurrentDevice current(device_);
    params.partials = static_cast<float*>(workspace);
    const cuda::DecodeKernel& kernel = *cuda::find_decode_kernel(
        params.q_dtype, params.kv_dtype, params.num_qo_heads / params.num_kv_heads);
    cuda::DecodeArguments arguments{};
    arguments.params = params;
    arguments.plan = plan.view();
    arguments.box_tokens = cuda::box_tokens(params.page_size, kernel.stage_tokens);
    arguments.fresh_tokens = !launch.dependent         ? 0
                             : launch.fresh_tokens < 0 ? cuda::kAllTokens
                                                       : launch.fresh_tokens;
    const auto encode = [&](const char* name, const kernels::PagedPool& pool, CUtensorMap* map) {
      const CUresult result =
          cuda::encode_pool_map(encode_, pool, params, arguments.box_tokens, map);
      if (result == CUDA_SUCCESS) return HEADRACE_OK;
      return fail(HEADRACE_CUDA_ERROR, "cuTensorMapEncodeTiled of {} failed with CUresult {}", name,
                  static_cast<int>(result));
    };
    headrace_status status = encode("args.k_cache", params.k, &arguments.k_map);
    if (status == HEADRACE_OK) status = encode("args.v_cache", params.v, &arguments.v_map);
    if (status != HEADRACE_OK) return status;

    cudaLaunchConfig_t config{};
    config.gridDim = dim3(num_workers_);
    config.blockDim = dim3(static_cast<unsigned>(kernel.threads));
    config.dynamicSmemBytes = kernel.shared_bytes;
    config.stream = static_cast<cudaStream_t>(launch.stream);
    cudaLaunchAttribute dependent{};
    dependent.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    dependent.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &dependent;
    config.numAttrs = launch.dependent ? 1 : 0;
    void* kernel_arguments[] = {&arguments};
    HEADRACE_RETURN_IF_CUDA_FAILS(cudaLaunchKernelExC, &config,
                                  reinterpret_cast<const void*>(kernel.function), kernel_arguments);
    return HEADRACE_OK;
  }

 private:
  int device_;
  std::uint32_t num_workers_;
  cuda::TensorMapEncoder encode_;
  std::string description_;
};

}  // namespace

headrace_status create_cuda_executor(std::uint32_t num_workers,
                                     std::unique_ptr<Executor>& executor) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    return fail(HEADRACE_UNSUPPORTED,
                "options.device is HEADRACE_DEVICE_CUDA, but there is no CUDA device here: {}",
                error != cudaSuccess ? cudaGetErrorString(error) : "the driver finds none");
  }
  int device = 0;
  HEADRACE_RETURN_IF_CUDA_FAILS(cudaGetDevice, &device);
  cudaDeviceProp properties;
  HEADRACE_RETURN_IF_CUDA_FAILS(cudaGetDeviceProperties, &properties, device);
  if (properties.major != 9 || properties.minor != 0) {
    return fail(HEADRACE_UNSUPPORTED,
                "options.device is HEADRACE_DEVICE_CUDA, but device {} ({}) has compute capability "
                "{}.{}; needed: 9.0 "
                "(Hopper)",
                device, properties.name, properties.major, properties.minor);
  }
  const cuda::TensorMapEncoder encode = cuda::find_tensor_map_encoder();
  if (encode == nullptr) {
    return fail(HEADRACE_UNSUPPORTED,
                "options.device is HEADRACE_DEVICE_CUDA, but the driver has no "
                "cuTensorMapEncodeTiled; needed: a driver "
                "for CUDA 12.0 or later");
  }
  for (const cuda::DecodeKernel& kernel : cuda::decode_kernels()) {
    HEADRACE_RETURN_IF_CUDA_FAILS(
        cudaFuncSetAttribute, reinterpret_cast<const void*>(kernel.function),
        cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(kernel.shared_bytes));
  }
  if (num_workers == 0) num_workers = static_cast<std::uint32_t>(properties.multiProcessorCount);
  executor = std::make_unique<CudaExecutor>(device, properties, num_workers, encode);
  return HEADRACE_OK;
}

}  // namespace headrace::runtime
