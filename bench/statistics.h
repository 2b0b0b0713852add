#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace headrace::bench {

// The value below which `fraction` of the values lie, by linear interpolation. Not for no values.
inline double quantile(std::vector<double> values, double fraction) {
  std::sort(values.begin(), values.end());
  const double position = fraction * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
}

// Standard error of the median in per cent of it, estimated from the quartiles as for a normal
// distribution: deviation = quartile range / 1.349, error of the median = 1.253 deviation /
// sqrt(n).
inline double median_error_pct(const std::vector<double>& values) {
  const double deviation = (quantile(values, 0.75) - quantile(values, 0.25)) / 1.349;
  return 125.3 * deviation / std::sqrt(static_cast<double>(values.size())) / quantile(values, 0.5);
}

}  // namespace headrace::bench
