#pragma once

#include <cstdint>

namespace headrace::bench {

// One row of the output.
struct RequestHead {
  std::int32_t request;
  std::int32_t head;  // query head

  bool operator==(const RequestHead&) const = default;
};

}  // namespace headrace::bench
