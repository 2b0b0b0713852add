// What the benchmark ran on.
#pragma once

#include <cstddef>
#include <string>

namespace headrace::bench::cpu {

std::string cpu_model();
// All of the machine's last-level caches together.
std::size_t last_level_cache_bytes();
std::size_t available_memory_bytes();

}  // namespace headrace::bench::cpu
