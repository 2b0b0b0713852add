// How a step is started on a GPU; a CPU knows the plain way only.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace headrace::bench {

enum LaunchKind { kPlainLaunch, kDependentLaunch };

inline const std::map<std::string, LaunchKind>& launch_kinds() {
  static const std::map<std::string, LaunchKind> names{{"plain", kPlainLaunch},
                                                       {"dependent", kDependentLaunch}};
  return names;
}

struct Launch {
  LaunchKind kind = kPlainLaunch;
  std::int32_t fresh_tokens = 0;  // as headrace_run_args has them; 0 of plain launches

  bool is_dependent() const { return kind == kDependentLaunch; }
  bool operator==(const Launch&) const = default;
};

}  // namespace headrace::bench
