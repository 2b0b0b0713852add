// The seam between the benchmark and a device: its memory, its clock, its copies, and a float64
// reference that runs where the data is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "bench/request_head.h"
#include "headrace/headrace.hpp"

namespace headrace::bench {

class Problem;

struct FreeMemory {
  void (*free)(void*) = nullptr;
  void operator()(std::byte* memory) const { free(memory); }
};
using Memory = std::unique_ptr<std::byte[], FreeMemory>;

// A way to move memory, and how long it took.
struct MemoryTime {
  std::string name;
  double us;
};

class Backend {
 public:
  // Between two runs on the same K and V at least cold_bytes are read, so that no cache holds them.
  Backend(Context context, std::size_t cold_bytes)
      : context_(std::move(context)), cold_bytes_(cold_bytes) {}
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  const Context& context() const { return context_; }
  std::size_t cold_bytes() const { return cold_bytes_; }

  // What results depend on: those of equal machines may stand in one file.
  virtual nlohmann::ordered_json machine() const = 0;
  // What may be allocated for K and V now.
  virtual std::size_t available_bytes() const = 0;
  virtual double default_min_time_s() const = 0;

  // Uninitialised. Throws std::runtime_error with the bytes needed and available if these are too
  // many.
  virtual Memory allocate(std::size_t num_bytes) const = 0;
  virtual void upload(void* to, const void* from, std::size_t num_bytes) const = 0;
  // Waits for the runs before it.
  virtual void download(void* to, const void* from, std::size_t num_bytes) const = 0;
  // Writes elements [begin, end) of an endless sequence, the same for the same dtype and seed, of
  // normally distributed values of deviation 1 to their places in `data`.
  virtual void fill_normal(void* data, std::int64_t begin, std::int64_t end, headrace_dtype dtype,
                           std::uint64_t seed) const = 0;

  // Bytes read + bytes written over time, of the fastest copy found.
  virtual double peak_copy_gbps() = 0;
  // Runs on the KV sets in turn, and a copy that moves as many bytes.
  virtual Timing time(Problem& problem, const StopRule& rule) = 0;
  // Runs on the KV sets in turn, back to back as time() does, of which the last timelines.size()
  // are recorded, each in its own timeline (device memory). All have ended when it returns.
  virtual void record(Problem& problem, std::span<headrace_timeline_record* const> timelines) = 0;
  // How long it takes to copy (half read, half written) and to read num_bytes.
  virtual std::vector<MemoryTime> memory_times(std::size_t num_bytes) = 0;

  // Decode attention in float64, [rows, head_dim]; the pools are packed.
  virtual std::vector<double> reference(const headrace_attention_desc& desc,
                                        const headrace_run_args& args,
                                        std::span<const RequestHead> rows) const = 0;
  // The sum of the rows' lengths that reference() can do in a fraction of a second.
  virtual std::int64_t reference_tokens() const = 0;

 private:
  Context context_;
  std::size_t cold_bytes_;
};

// working_set_bytes 0: cold_bytes is four times the last-level cache.
std::unique_ptr<Backend> make_cpu_backend(Context context, std::size_t working_set_bytes);
std::unique_ptr<Backend> make_cuda_backend(Context context, std::size_t working_set_bytes);
// Throws headrace::Error where build or machine lack the device.
std::unique_ptr<Backend> make_backend(headrace_device device, std::int32_t num_workers,
                                      std::size_t working_set_bytes);

}  // namespace headrace::bench
