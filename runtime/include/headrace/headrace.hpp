// headrace in C++20: owners of the C handles, exceptions instead of status codes. Header-only over
// the C ABI; see headrace.h for shapes, units and what each call requires.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "headrace/headrace.h"

namespace headrace {

// A call that failed: what() is the library's message, with the value needed and the value given.
class Error : public std::runtime_error {
 public:
  Error(headrace_status status, const char* message)
      : std::runtime_error(message), status_(status) {}

  headrace_status status() const noexcept { return status_; }

 private:
  headrace_status status_;
};

// Throws Error with this thread's message unless `status` is HEADRACE_OK.
inline void check(headrace_status status) {
  if (status != HEADRACE_OK) throw Error(status, headrace_last_error());
}

// Structs with their defaults filled in; set the other fields as needed.
inline headrace_attention_desc attention_desc(std::int32_t num_qo_heads, std::int32_t num_kv_heads,
                                              std::int32_t head_dim, float sm_scale) {
  headrace_attention_desc desc = headrace_attention_desc_default();
  desc.num_qo_heads = num_qo_heads;
  desc.num_kv_heads = num_kv_heads;
  desc.head_dim = head_dim;
  desc.sm_scale = sm_scale;
  return desc;
}

inline headrace_plan_options plan_options(std::int32_t max_requests, std::int32_t max_seq_len) {
  headrace_plan_options options = headrace_plan_options_default();
  options.max_requests = max_requests;
  options.max_seq_len = max_seq_len;
  return options;
}

inline headrace_run_args run_args() { return headrace_run_args_default(); }

// Host memory aligned as plan buffers and workspaces need it. Engines with an allocator of their
// own pass that memory instead.
class HostBuffer {
 public:
  HostBuffer(std::size_t bytes, std::size_t alignment)
      : data_(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{alignment}))),
        bytes_(bytes),
        alignment_(alignment) {}
  ~HostBuffer() { ::operator delete (data_, std::align_val_t{alignment_}); }
  HostBuffer(HostBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        alignment_(other.alignment_) {}
  HostBuffer& operator=(HostBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(alignment_, other.alignment_);
    return *this;
  }

  std::span<std::byte> span() const noexcept { return {data_, bytes_}; }

 private:
  std::byte* data_;
  std::size_t bytes_;
  std::size_t alignment_;
};

// A device and its workers.
class Context {
 public:
  explicit Context(headrace_device device = HEADRACE_DEVICE_AUTO, std::int32_t num_workers = 0) {
    headrace_context_options options = headrace_context_options_default();
    options.device = device;
    options.num_workers = num_workers;
    check(headrace_context_create(&options, &handle_));
  }
  ~Context() { headrace_context_destroy(handle_); }
  Context(Context&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Context& operator=(Context&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }

  headrace_context_info info() const {
    headrace_context_info info{};
    info.struct_size = sizeof(info);
    check(headrace_context_get_info(handle_, &info));
    return info;
  }

  // The exact bytes a plan of this description needs.
  headrace_plan_sizes plan_sizes(const headrace_attention_desc& desc,
                                 const headrace_plan_options& options) const {
    headrace_plan_sizes sizes{};
    sizes.struct_size = sizeof(sizes);
    check(headrace_plan_get_sizes(handle_, &desc, &options, &sizes));
    return sizes;
  }

  headrace_context* get() const noexcept { return handle_; }

 private:
  headrace_context* handle_ = nullptr;
};

// A queue of work for one description. The context and the buffer must outlive it.
class Plan {
 public:
  Plan(const Context& context, const headrace_attention_desc& desc,
       const headrace_plan_options& options, std::span<std::byte> buffer) {
    check(headrace_plan_create(context.get(), &desc, &options, buffer.data(), buffer.size(),
                               &handle_));
  }
  ~Plan() { headrace_plan_destroy(handle_); }
  Plan(Plan&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Plan& operator=(Plan&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }

  // Plans for these lengths (host memory, tokens), one per request. Once per step.
  void update(std::span<const std::int32_t> seq_lens, void* stream = nullptr) {
    if (seq_lens.size() > INT32_MAX) throw std::length_error("headrace: more than 2^31 requests");
    check(headrace_plan_update(handle_, seq_lens.data(), static_cast<std::int32_t>(seq_lens.size()),
                               stream));
  }

  // Computes attention. Once per layer.
  void run(const headrace_run_args& args) { check(headrace_run(handle_, &args)); }

  std::string describe(headrace_plan_format format = HEADRACE_PLAN_TEXT) const {
    std::size_t bytes = 0;
    check(headrace_plan_describe(handle_, format, nullptr, &bytes));
    std::string text(bytes, '\0');
    check(headrace_plan_describe(handle_, format, text.data(), &bytes));
    text.pop_back();  // the terminator
    return text;
  }

  headrace_plan* get() const noexcept { return handle_; }

 private:
  headrace_plan* handle_ = nullptr;
};

}  // namespace headrace
