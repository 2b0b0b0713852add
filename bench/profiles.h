// Batches of request lengths by name, e.g. "lognormal:2048,1.2".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::bench {

class Profile {
 public:
  // Throws std::invalid_argument, whose message names what is needed and what was given.
  static Profile parse(std::string_view text);

  // As given to parse().
  const std::string& text() const { return text_; }

  // one-long and file say themselves how many requests there are.
  bool fixes_batch() const;

  // The lengths in tokens; `batch` is ignored where the profile fixes it. The same seed gives the
  // same lengths on every machine.
  std::vector<std::int32_t> lengths(std::int32_t batch, std::uint64_t seed) const;

 private:
  std::string text_;
  std::string kind_;
  std::vector<double> arguments_;
  std::vector<std::int32_t> file_lengths_;
};

// One line per profile for --help.
std::string profiles_help();

}  // namespace headrace::bench
