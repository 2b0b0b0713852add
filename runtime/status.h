// Status codes and the message of a thread's last failure.
#pragma once

#include <fmt/format.h>

#include <cstring>
#include <span>
#include <utility>

#include "headrace/headrace.h"

namespace headrace::runtime {

// This thread's message, 0-terminated. A fixed buffer: failing allocates nothing either.
std::span<char> last_error_buffer() noexcept;

// Records the message of a failure (cut off where the buffer ends) and returns `status`.
template <typename... Args>
headrace_status fail(headrace_status status, fmt::format_string<Args...> format,
                     Args&&... args) noexcept {
  const std::span<char> text = last_error_buffer();
  const auto end =
      fmt::format_to_n(text.data(), text.size() - 1, format, std::forward<Args>(args)...).out;
  *end = '\0';
  return status;
}

// The number behind a C enum. Callers may store anything there, and reading a value that the
// enum does not have through its own type would be undefined.
template <typename Enum>
int raw_value(const Enum& value) noexcept {
  static_assert(sizeof(Enum) == sizeof(int));
  int number;
  std::memcpy(&number, &value, sizeof(number));
  return number;
}

}  // namespace headrace::runtime
