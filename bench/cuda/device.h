// CUDA memory and errors for the benchmark.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace headrace::bench::cuda {

inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
  }
}

// Device memory of `size` elements, uninitialised.
template <typename T>
class Array {
 public:
  explicit Array(std::size_t size) : size_(size) {
    void* memory = nullptr;
    check(cudaMalloc(&memory, std::max<std::size_t>(size * sizeof(T), 1)), "cudaMalloc");
    data_ = static_cast<T*>(memory);
  }
  explicit Array(std::span<const T> values) : Array(values.size()) {
    check(cudaMemcpy(data_, values.data(), values.size_bytes(), cudaMemcpyHostToDevice), "upload");
  }
  ~Array() { cudaFree(data_); }
  Array(Array&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Array& operator=(Array&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  T* data() const { return data_; }
  std::size_t size() const { return size_; }

  std::vector<T> download() const {
    std::vector<T> values(size_);
    check(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost), "download");
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace headrace::bench::cuda
