#include "runtime/argument_checks.h"

#include "runtime/status.h"

namespace headrace::runtime {
namespace {

template <typename... Args>
bool refuse(fmt::format_string<Args...> format, Args&&... args) noexcept {
  fail(HEADRACE_INVALID_ARGUMENT, format, std::forward<Args>(args)...);
  return false;
}

}  // namespace

bool check_not_null(const char* name, const void* pointer) noexcept {
  return pointer != nullptr || refuse("{} is null; needed: a valid pointer", name);
}

bool check_optional_pointer(const char* name, const void* pointer, std::size_t alignment) noexcept {
  return reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0 ||
         refuse("{} is {}; needed: a multiple of {} bytes", name, pointer, alignment);
}

bool check_pointer(const char* name, const void* pointer, std::size_t alignment) noexcept {
  return check_not_null(name, pointer) && check_optional_pointer(name, pointer, alignment);
}

bool check_struct_size(const char* name, std::size_t given, std::size_t needed) noexcept {
  return given == needed ||
         refuse("{}.struct_size is {}; needed: {} bytes (is the header of another version?)", name,
                given, needed);
}

bool check_range(const char* name, std::int64_t value, std::int64_t lowest,
                 std::int64_t highest) noexcept {
  return (lowest <= value && value <= highest) ||
         refuse("{} is {}; needed: {} to {}", name, value, lowest, highest);
}

headrace_status check_buffer_size(const char* name, std::size_t given,
                                  std::size_t needed) noexcept {
  if (given >= needed) return HEADRACE_OK;
  return fail(HEADRACE_BUFFER_TOO_SMALL, "{} is {}; needed: at least {} bytes", name, given,
              needed);
}

}  // namespace headrace::runtime
