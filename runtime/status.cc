#include "runtime/status.h"

namespace headrace::runtime {

std::span<char> last_error_buffer() noexcept {
  static thread_local char buffer[512] = "";
  return buffer;
}

}  // namespace headrace::runtime
