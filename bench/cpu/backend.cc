// The CPU: its memory is the host's, and a run is over when the call returns.
#include "bench/backend.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "bench/cpu/clock.h"
#include "bench/cpu/machine.h"
#include "bench/cpu/memory_meter.h"
#include "bench/cpu/reference.h"
#include "bench/cpu/threads.h"
#include "bench/number_format.h"
#include "bench/problem.h"
#include "bench/random.h"

namespace headrace::bench {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
// Drawing every value anew would take longer than the measurement: the sequence repeats. Odd, so
// that no two tokens or heads near each other are alike.
constexpr std::int64_t kPeriod = (1 << 20) + 1;
// Of the time spent on runs, what copying may take.
constexpr double kMemoryShare = 0.5;
constexpr int kPeakSamples = 9;

class CpuBackend final : public Backend {
 public:
  using Backend::Backend;

  nlohmann::ordered_json machine() const override {
    return {{"device", cpu::cpu_model()},
            {"executor", context().info().description},
            {"workers", num_workers()},
            {"threads", std::thread::hardware_concurrency()},
            {"last_level_cache_bytes", cpu::last_level_cache_bytes()}};
  }
  std::size_t available_bytes() const override { return cpu::available_memory_bytes(); }
  double default_min_time_s() const override { return 1; }

  // Huge pages where the system has them, as an engine's pools are. The system hands out more than
  // it has and kills whoever touches it, so ask first.
  Memory allocate(std::size_t num_bytes) const override {
    if (num_bytes > available_bytes()) {
      throw std::runtime_error(fmt::format("needs {} MiB of memory, {} MiB are available",
                                           num_bytes >> 20, available_bytes() >> 20));
    }
    const std::size_t rounded = (num_bytes / kHugePageBytes + 1) * kHugePageBytes;
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(kHugePageBytes, rounded));
    if (memory == nullptr) throw std::bad_alloc();
    madvise(memory, rounded, MADV_HUGEPAGE);
    return Memory(memory, {std::free});
  }
  void upload(void* to, const void* from, std::size_t num_bytes) const override {
    std::memcpy(to, from, num_bytes);
  }
  void download(void* to, const void* from, std::size_t num_bytes) const override {
    std::memcpy(to, from, num_bytes);
  }

  // Several threads write it, so that on a machine with several memory nodes all of them hold a
  // part.
  void fill_normal(void* data, std::int64_t begin, std::int64_t end, headrace_dtype dtype,
                   std::uint64_t seed) const override {
    const NumberFormat format = format_of(dtype);
    const std::int64_t period = std::min(end, kPeriod);
    std::vector<std::byte> values(static_cast<std::size_t>(period) * format.bytes());
    Random random(seed);
    for (std::int64_t i = 0; i < period; ++i) {
      store(static_cast<float>(random.normal()), values.data(), i, format);
    }
    cpu::on_threads(num_workers(), [&](int thread) {
      for (std::int64_t i = begin / period + thread; i * period < end; i += num_workers()) {
        const std::int64_t first = std::max(begin, i * period);
        const std::int64_t last = std::min(end, (i + 1) * period);
        std::memcpy(static_cast<std::byte*>(data) + to_bytes(first, format),
                    values.data() + to_bytes(first - i * period, format),
                    to_bytes(last - first, format));
      }
    });
  }

  double peak_copy_gbps() override {
    cpu::MemoryMeter& meter = start_meter(2 * cold_bytes());
    for (int i = 0; i < kPeakSamples; ++i) meter.sample_us();
    return meter.copy_gbps(0);
  }

  Timing time(Problem& problem, const StopRule& rule) override {
    cpu::MemoryMeter& meter = start_meter(problem.config().kv_bytes());
    std::int64_t set = 0;
    const auto run = [&] { problem.run(set++ % problem.num_sets()); };
    run();  // wakes the workers and touches every buffer once
    double runs_us = 0;
    double memory_us = 0;
    const std::vector<double> times_us = repeat_us(rule, [&] {
      const double us = cpu::elapsed_us(run);
      runs_us += us;
      if (memory_us < kMemoryShare * runs_us) memory_us += meter.sample_us();
      return us;
    });
    return summarise(times_us, 1, meter.copy_gbps(0.5));
  }

  void record(Problem& problem, std::span<headrace_timeline_record* const> timelines) override {
    for (std::int64_t set = 0; set < problem.num_sets(); ++set) problem.run(set);
    std::int64_t set = 0;
    for (headrace_timeline_record* timeline : timelines) {
      problem.run(set++ % problem.num_sets(), nullptr, timeline);
    }
  }

  std::vector<MemoryTime> memory_times(std::size_t num_bytes) override {
    cpu::MemoryMeter meter(*this, num_workers(), std::max(num_bytes, cold_bytes()));
    meter.start(num_bytes);
    for (int i = 0; i < kPeakSamples; ++i) meter.sample_us();
    const double kilobytes = static_cast<double>(num_bytes) / 1e3;
    return {{"copy", kilobytes / meter.copy_gbps(0)}, {"read", kilobytes / meter.read_gbps(0)}};
  }

  std::vector<double> reference(const headrace_attention_desc& desc, const headrace_run_args& args,
                                std::span<const RequestHead> rows) const override {
    return cpu::reference(desc, args, rows);
  }
  std::int64_t reference_tokens() const override { return 1 << 17; }

 private:
  int num_workers() const { return context().info().num_workers; }

  static std::size_t to_bytes(std::int64_t elements, const NumberFormat& format) {
    return static_cast<std::size_t>(elements) * format.bytes();
  }

  cpu::MemoryMeter& start_meter(std::size_t num_bytes) {
    if (!meter_) meter_.emplace(*this, num_workers(), cold_bytes());
    meter_->start(num_bytes);
    return *meter_;
  }

  std::optional<cpu::MemoryMeter> meter_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(Context context, std::size_t working_set_bytes) {
  const std::size_t cold_bytes =
      working_set_bytes > 0 ? working_set_bytes : 4 * cpu::last_level_cache_bytes();
  return std::make_unique<CpuBackend>(std::move(context), cold_bytes);
}

}  // namespace headrace::bench
