#include "tests/support/problem_memory.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "tests/reference/dtypes.h"

namespace headrace::tests {
namespace {

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

template <typename T>
DeviceBuffer uploaded(headrace_device device, Guards guards, const std::vector<T>& values) {
  DeviceBuffer buffer(device, bytes_of(values).size(), guards);
  buffer.upload(bytes_of(values));
  return buffer;
}

template <typename T>
std::optional<DeviceBuffer> uploaded_if_any(headrace_device device, Guards guards,
                                            const std::vector<T>& values) {
  if (values.empty()) return std::nullopt;
  return uploaded(device, guards, values);
}

template <typename T>
bool holds(const DeviceBuffer& buffer, const std::vector<T>& values) {
  const std::vector<std::byte> now = buffer.download();
  const auto original = bytes_of(values);
  if (now.empty()) return original.empty();  // memcmp wants pointers even to nothing
  return now.size() == original.size() && std::memcmp(now.data(), original.data(), now.size()) == 0;
}

std::vector<std::byte> all_nan(headrace_dtype dtype, std::int64_t elements) {
  std::vector<std::byte> tensor(static_cast<std::size_t>(elements) * dtype_bytes(dtype));
  fill_row(dtype, tensor, 0, elements, encode(dtype, std::numeric_limits<double>::quiet_NaN()));
  return tensor;
}

// The bytes of row (request, head) of `width` elements.
template <typename Bytes>
auto row_bytes(Bytes& tensor, const RowView& rows, std::size_t element_bytes, std::int64_t width,
               std::size_t request, std::int32_t head) {
  return std::span(tensor).subspan(static_cast<std::size_t>(rows.at(request, head)) * element_bytes,
                                   static_cast<std::size_t>(width) * element_bytes);
}

// Whether `tensor` still is what all_nan() makes, rows aside.
bool gaps_intact(const Problem& problem, headrace_dtype dtype, const RowView& rows,
                 std::int64_t width, std::vector<std::byte> tensor) {
  const std::vector<std::byte> untouched = all_nan(dtype, rows.num_elements);
  for (std::size_t r = 0; r < problem.num_requests(); ++r) {
    for (std::int32_t h = 0; h < problem.desc.num_qo_heads; ++h) {
      const auto row = row_bytes(tensor, rows, dtype_bytes(dtype), width, r, h);
      const auto original = row_bytes(untouched, rows, dtype_bytes(dtype), width, r, h);
      std::ranges::copy(original, row.begin());
    }
  }
  return tensor == untouched;
}

}  // namespace

ProblemMemory::ProblemMemory(const Problem& problem, headrace_device device, Guards guards,
                             bool want_lse)
    : problem_(problem),
      q_(uploaded(device, guards, problem.q)),
      pools_{uploaded(device, guards, problem.pools[0]),
             uploaded(device, guards, problem.pools[1])},
      block_table_(uploaded(device, guards, problem.block_table)),
      seq_lens_(uploaded(device, guards, problem.seq_lens)),
      k_scale_(uploaded_if_any(device, guards, problem.k_scale)),
      v_scale_(uploaded_if_any(device, guards, problem.v_scale)),
      out_(uploaded(device, guards,
                    all_nan(problem.desc.out_dtype, problem.out_rows.num_elements))) {
  if (want_lse) {
    lse_ = uploaded(device, guards, all_nan(HEADRACE_FLOAT32, problem.lse_rows.num_elements));
  }
}

void ProblemMemory::upload() {
  q_.upload(bytes_of(problem_.q));
  for (std::size_t i = 0; i < pools_.size(); ++i) pools_[i].upload(bytes_of(problem_.pools[i]));
  block_table_.upload(bytes_of(problem_.block_table));
  seq_lens_.upload(bytes_of(problem_.seq_lens));
  if (k_scale_) k_scale_->upload(bytes_of(problem_.k_scale));
  if (v_scale_) v_scale_->upload(bytes_of(problem_.v_scale));
  out_.upload(all_nan(problem_.desc.out_dtype, problem_.out_rows.num_elements));
  if (lse_) lse_->upload(all_nan(HEADRACE_FLOAT32, problem_.lse_rows.num_elements));
}

headrace_run_args ProblemMemory::args() const {
  const auto element = [](const DeviceBuffer& buffer, std::int64_t index, headrace_dtype dtype) {
    return static_cast<std::byte*>(buffer.data()) +
           static_cast<std::size_t>(index) * dtype_bytes(dtype);
  };
  const auto scale = [](const std::optional<DeviceBuffer>& buffer) {
    return buffer ? static_cast<const float*>(buffer->data()) : nullptr;
  };
  const headrace_attention_desc& desc = problem_.desc;
  headrace_run_args args = headrace_run_args_default();
  args.num_requests = static_cast<std::int32_t>(problem_.num_requests());
  args.q = element(q_, problem_.q_rows.offset, desc.q_dtype);
  args.k_cache = element(pools_[problem_.k.memory], problem_.k.offset, desc.kv_dtype);
  args.v_cache = element(pools_[problem_.v.memory], problem_.v.offset, desc.kv_dtype);
  args.num_pages = problem_.num_pages;
  args.block_table = static_cast<const std::int32_t*>(block_table_.data());
  args.block_table_stride = problem_.block_table_stride;
  args.seq_lens = static_cast<const std::int32_t*>(seq_lens_.data());
  args.k_scale = scale(k_scale_);
  args.v_scale = scale(v_scale_);
  args.out = element(out_, problem_.out_rows.offset, desc.out_dtype);
  if (lse_) {
    args.lse = reinterpret_cast<float*>(element(*lse_, problem_.lse_rows.offset, HEADRACE_FLOAT32));
  }
  return args;
}

Result ProblemMemory::collect() const {
  Result result;
  result.out = out_.download();
  if (lse_) result.lse = lse_->download();
  result.damage = find_damage(result);
  return result;
}

std::string ProblemMemory::find_damage(const Result& result) const {
  const auto guards_intact = [](const std::optional<DeviceBuffer>& buffer) {
    return !buffer || buffer->guards_intact();
  };
  std::string damage;
  const auto check = [&damage](bool good, const char* what) {
    if (!good) damage += std::string(what) + " was written; ";
  };
  check(holds(q_, problem_.q) && q_.guards_intact(), "q or around it");
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    check(holds(pools_[i], problem_.pools[i]) && pools_[i].guards_intact(), "a pool or around it");
  }
  check(holds(block_table_, problem_.block_table) && block_table_.guards_intact(),
        "block_table or around it");
  check(holds(seq_lens_, problem_.seq_lens) && seq_lens_.guards_intact(), "seq_lens or around it");
  check(guards_intact(k_scale_) && (!k_scale_ || holds(*k_scale_, problem_.k_scale)),
        "k_scale or around it");
  check(guards_intact(v_scale_) && (!v_scale_ || holds(*v_scale_, problem_.v_scale)),
        "v_scale or around it");
  check(out_.guards_intact(), "something around out");
  check(gaps_intact(problem_, problem_.desc.out_dtype, problem_.out_rows, problem_.desc.head_dim,
                    result.out),
        "a gap of out");
  check(guards_intact(lse_), "something around lse");
  check(!lse_ || gaps_intact(problem_, HEADRACE_FLOAT32, problem_.lse_rows, 1, result.lse),
        "a gap of lse");
  return damage;
}

std::vector<float> out_row(const Problem& problem, const Result& result, std::size_t request,
                           std::int32_t head) {
  std::vector<float> row(static_cast<std::size_t>(problem.desc.head_dim));
  load_row(problem.desc.out_dtype, result.out, problem.out_rows.at(request, head), row);
  return row;
}

float lse_value(const Problem& problem, const Result& result, std::size_t request,
                std::int32_t head) {
  float value;
  load_row(HEADRACE_FLOAT32, result.lse, problem.lse_rows.at(request, head), {&value, 1});
  return value;
}

std::vector<std::byte> request_bits(const Problem& problem, const Result& result,
                                    std::size_t request) {
  std::vector<std::byte> bits;
  const auto append = [&bits](std::span<const std::byte> row) {
    bits.insert(bits.end(), row.begin(), row.end());
  };
  for (std::int32_t h = 0; h < problem.desc.num_qo_heads; ++h) {
    append(row_bytes(result.out, problem.out_rows, dtype_bytes(problem.desc.out_dtype),
                     problem.desc.head_dim, request, h));
    if (!result.lse.empty()) {
      append(row_bytes(result.lse, problem.lse_rows, sizeof(float), 1, request, h));
    }
  }
  return bits;
}

}  // namespace headrace::tests
