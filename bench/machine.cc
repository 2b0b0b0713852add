#include "bench/machine.h"

#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>

namespace headrace::bench {
namespace {

// The text after the colon of the first line of `path` that starts with `key`; "" if none does.
std::string find_value(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

}  // namespace

std::string cpu_model() {
  const std::string model = find_value("/proc/cpuinfo", "model name");
  return model.empty() ? "unknown" : model;
}

// sysconf() overstates it on some AMD machines, the kernel's own table does not.
std::size_t last_level_cache_bytes() {
  constexpr std::size_t kAssumed = std::size_t{32} << 20;
  std::size_t bytes = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) +
                       "/size");
    std::size_t kib = 0;
    if (file >> kib) bytes = std::max(bytes, kib << 10);
  }
  return bytes == 0 ? kAssumed : bytes;
}

std::size_t available_memory_bytes() {
  std::size_t kib = 0;
  std::istringstream value(find_value("/proc/meminfo", "MemAvailable"));
  return value >> kib ? kib << 10 : std::numeric_limits<std::size_t>::max();
}

}  // namespace headrace::bench
