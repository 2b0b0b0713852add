// `roof`: what the memory can do, per size.
#include <fmt/format.h>

#include <cstdio>

#include "bench/backend.h"
#include "bench/commands.h"
#include "bench/commit.h"
#include "bench/results.h"

namespace headrace::bench {
namespace {

constexpr std::size_t kMinBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxBytes = std::size_t{4} << 30;

double gbps(std::size_t num_bytes, const MemoryTime& time) {
  return static_cast<double>(num_bytes) / time.us / 1e3;
}

nlohmann::ordered_json to_json(std::size_t num_bytes, const std::vector<MemoryTime>& times) {
  nlohmann::ordered_json row{{"bytes", num_bytes}};
  for (const MemoryTime& time : times) {
    row[time.name + "_us"] = time.us;
    row[time.name + "_gbps"] = gbps(num_bytes, time);
  }
  return row;
}

std::string line(std::size_t num_bytes, const std::vector<MemoryTime>& times) {
  std::string text = fmt::format("{:>8.1f}", static_cast<double>(num_bytes) / 1e6);
  for (const MemoryTime& time : times) {
    const std::string cell = fmt::format("{:.2f} ({:.1f})", time.us, gbps(num_bytes, time));
    text += fmt::format("  {:>20}", cell);
  }
  return text;
}

std::string header(const std::vector<MemoryTime>& times) {
  std::string text = fmt::format("{:>8}", "MB");
  for (const MemoryTime& time : times) text += fmt::format("  {:>20}", time.name);
  return text + "   (each: us, GB/s)";
}

}  // namespace

int measure_roof(const Options& options) {
  require_writable(options.json_path);
  const std::unique_ptr<Backend> backend = make_backend(
      options.device, options.workers, static_cast<std::size_t>(options.working_set_mib) << 20);
  const bool prints_table = options.json_path != "-";
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (std::size_t num_bytes = kMinBytes; num_bytes <= kMaxBytes; num_bytes *= 2) {
    const double megabytes = static_cast<double>(num_bytes) / 1e6;
    if (megabytes < options.min_mb || megabytes > options.max_mb) continue;
    if (2 * num_bytes > backend->available_bytes()) {
      fmt::print(stderr,
                 "headrace-bench: left out from {:.1f} MB up: needs {} MiB of memory, {} MiB are "
                 "available\n",
                 megabytes, 2 * num_bytes >> 20, backend->available_bytes() >> 20);
      break;
    }
    const std::vector<MemoryTime> times = backend->memory_times(num_bytes);
    if (prints_table) {
      if (rows.empty()) fmt::print("{}\n", header(times));
      fmt::print("{}\n", line(num_bytes, times));
      std::fflush(stdout);
    }
    rows.push_back(to_json(num_bytes, times));
  }
  if (!options.json_path.empty()) {
    write_json(options.json_path, {{"version", headrace_version()},
                                   {"machine", backend->machine()},
                                   {"commit", HEADRACE_BENCH_COMMIT},
                                   {"rows", rows}});
  }
  return 0;
}

}  // namespace headrace::bench
