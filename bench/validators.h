// Checks of option values whose messages name what is needed and what was given.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <string>

namespace headrace::bench {

// CLI11's own validators write their ranges into the help and their maps into the messages.
template <typename Enum>
CLI::Validator one_of(const std::map<std::string, Enum>& names) {
  const auto to_value = [&names](std::string& text) -> std::string {
    const auto named = names.find(CLI::detail::to_lower(text));
    if (named != names.end()) {
      text = std::to_string(named->second);
      return "";
    }
    std::string known;
    for (const auto& [name, value] : names) known += (known.empty() ? "" : ", ") + name;
    return fmt::format("needs one of {}; given '{}'", known, text);
  };
  return CLI::Validator(to_value, "");
}

inline CLI::Validator from_to(double low, double high) {
  const auto check = [low, high](const std::string& text) -> std::string {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && value >= low && value <= high) return "";
    return fmt::format("needs a number from {} to {}, given '{}'", low, high, text);
  };
  return CLI::Validator(check, "");
}

}  // namespace headrace::bench
