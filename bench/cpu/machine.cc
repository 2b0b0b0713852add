#include "bench/cpu/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>

namespace headrace::bench::cpu {
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

// How many bits a file of comma-separated hexadecimal words has set.
std::size_t count_bits(const std::string& path) {
  std::ifstream file(path);
  std::string words;
  file >> words;
  std::size_t bits = 0;
  for (const char digit : words) {
    unsigned value = 0;
    std::from_chars(&digit, &digit + 1, value, 16);
    bits += static_cast<std::size_t>(std::popcount(value));
  }
  return bits;
}

}  // namespace

std::string cpu_model() {
  const std::string model = find_value("/proc/cpuinfo", "model name");
  return model.empty() ? "unknown" : model;
}

// From the kernel's table: sysconf() overstates it on some AMD machines. Every processor counts its
// part of the largest cache it can reach.
std::size_t last_level_cache_bytes() {
  constexpr std::size_t kAssumed = std::size_t{32} << 20;
  std::size_t total = 0;
  for (unsigned cpu = 0; cpu < std::thread::hardware_concurrency(); ++cpu) {
    std::size_t largest = 0;
    std::size_t sharers = 1;
    for (int index = 0; index < 5; ++index) {
      const std::string cache =
          fmt::format("/sys/devices/system/cpu/cpu{}/cache/index{}/", cpu, index);
      std::size_t kib = 0;
      if (!(std::ifstream(cache + "size") >> kib) || kib << 10 <= largest) continue;
      largest = kib << 10;
      sharers = std::max(count_bits(cache + "shared_cpu_map"), std::size_t{1});
    }
    total += largest / sharers;
  }
  return total == 0 ? kAssumed : total;
}

std::size_t available_memory_bytes() {
  std::size_t kib = 0;
  std::istringstream value(find_value("/proc/meminfo", "MemAvailable"));
  return value >> kib ? kib << 10 : std::numeric_limits<std::size_t>::max();
}

}  // namespace headrace::bench::cpu
