// Checks of single arguments. Those that return bool say whether the argument is good; if not, they
// have recorded a message with the argument's name, the value given and the value needed, and the
// status is INVALID_ARGUMENT. Calls chain with &&, and the first failure is the one reported.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/headrace.h"

namespace headrace::runtime {

bool check_not_null(const char* name, const void* pointer) noexcept;

// Not null, and its address a multiple of `alignment` bytes.
bool check_pointer(const char* name, const void* pointer, std::size_t alignment) noexcept;

// Null, or aligned.
bool check_optional_pointer(const char* name, const void* pointer, std::size_t alignment) noexcept;

// The size a caller was compiled with is the size this library knows.
bool check_struct_size(const char* name, std::size_t given, std::size_t needed) noexcept;

// lowest <= value <= highest.
bool check_range(const char* name, std::int64_t value, std::int64_t lowest,
                 std::int64_t highest) noexcept;

// Errors: BUFFER_TOO_SMALL.
headrace_status check_buffer_size(const char* name, std::size_t given, std::size_t needed) noexcept;

}  // namespace headrace::runtime
