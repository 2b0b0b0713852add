// What a failed call leaves behind.
#pragma once

#include <string>
#include <vector>

#include "headrace/headrace.h"
#include "tests/catch.h"

namespace headrace::tests {

// The status, and each of `parts` in the message: the argument's name, the values given and needed.
inline void expect_error(headrace_status status, headrace_status expected,
                         const std::vector<std::string>& parts) {
  const std::string message = headrace_last_error();
  INFO("message: " << message);
  CHECK(headrace_status_string(status) == std::string(headrace_status_string(expected)));
  for (const std::string& part : parts) {
    INFO("must name: " << part);
    CHECK(message.find(part) != std::string::npos);
  }
}

}  // namespace headrace::tests
