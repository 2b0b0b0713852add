#include "bench/profiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <span>
#include <stdexcept>

#include "bench/random.h"

namespace headrace::bench {
namespace {

constexpr double kMaxLength = std::numeric_limits<std::int32_t>::max();
constexpr double kDefaultClip = 131072;

std::int32_t to_length(double tokens, double min, double max) {
  return static_cast<std::int32_t>(std::lround(std::clamp(tokens, min, max)));
}

using Arguments = std::span<const double>;
using Lengths = std::vector<std::int32_t>;

Lengths uniform(Arguments args, std::size_t batch, Random&) {
  return Lengths(batch, to_length(args[0], 0, kMaxLength));
}

Lengths lognormal(Arguments args, std::size_t batch, Random& random) {
  const double min = args.size() > 2 ? args[2] : 1;
  const double max = args.size() > 3 ? args[3] : std::max(min, kDefaultClip);
  Lengths lengths(batch);
  for (std::int32_t& length : lengths) {
    length = to_length(args[0] * std::exp(args[1] * random.normal()), min, max);
  }
  return lengths;
}

Lengths one_long(Arguments args, std::size_t, Random&) {
  Lengths lengths(static_cast<std::size_t>(args[1]) + 1, to_length(args[2], 0, kMaxLength));
  lengths[0] = to_length(args[0], 0, kMaxLength);
  return lengths;
}

Lengths bimodal(Arguments args, std::size_t batch, Random& random) {
  const auto num_long = std::lround(args[2] * static_cast<double>(batch));
  Lengths lengths(batch, to_length(args[0], 0, kMaxLength));
  std::fill_n(lengths.begin(), num_long, to_length(args[1], 0, kMaxLength));
  random.shuffle(std::span(lengths));
  return lengths;
}

// Zipf's law by rank: the k-th longest request has longest / k^exponent tokens.
Lengths zipf(Arguments args, std::size_t batch, Random& random) {
  const double min = args.size() > 2 ? args[2] : 1;
  Lengths lengths(batch);
  for (std::size_t rank = 1; rank <= batch; ++rank) {
    const double tokens = args[0] / std::pow(static_cast<double>(rank), args[1]);
    lengths[rank - 1] = to_length(tokens, min, kMaxLength);
  }
  random.shuffle(std::span(lengths));
  return lengths;
}

struct Argument {
  std::string_view name;
  bool whole;  // a number of tokens or requests
  double max;
};

struct Kind {
  std::string_view name;
  std::string_view usage;
  std::string_view help;
  std::size_t min_arguments;
  std::vector<Argument> arguments;
  bool fixes_batch;
  Lengths (*generate)(Arguments, std::size_t batch, Random&);
};

const std::array<Kind, 5>& kinds() {
  static const Argument fraction{"fraction_long", false, 1};
  const auto tokens = [](std::string_view name) { return Argument{name, true, kMaxLength}; };
  const auto shape = [](std::string_view name) { return Argument{name, false, 16}; };
  static const std::array<Kind, 5> table{{
      {"uniform", "uniform:len", "all alike", 1, {tokens("len")}, false, uniform},
      {"lognormal",
       "lognormal:median,sigma[,min,max]",
       "clipped to [1, 131072] unless said",
       2,
       {tokens("median"), shape("sigma"), tokens("min"), tokens("max")},
       false,
       lognormal},
      {"one-long",
       "one-long:long,n,short",
       "one request of `long` tokens and n of `short`",
       3,
       {tokens("long"), {"n", true, 65535}, tokens("short")},
       true,
       one_long},
      {"bimodal",
       "bimodal:short,long,fraction_long",
       "two lengths, the long ones at random places",
       3,
       {tokens("short"), tokens("long"), fraction},
       false,
       bimodal},
      {"zipf",
       "zipf:longest,exponent[,min]",
       "the k-th longest has longest / k^exponent tokens",
       2,
       {tokens("longest"), shape("exponent"), tokens("min")},
       false,
       zipf},
  }};
  return table;
}

const Kind* find_kind(std::string_view name) {
  const auto found =
      std::find_if(kinds().begin(), kinds().end(), [&](const Kind& k) { return k.name == name; });
  return found == kinds().end() ? nullptr : &*found;
}

[[noreturn]] void fail(const std::string& message) { throw std::invalid_argument(message); }

// A number of at least 0; "k" multiplies by 1024.
double parse_number(std::string_view text, const Argument& argument, std::string_view profile) {
  const bool kilo = text.ends_with('k');
  const std::string_view digits = text.substr(0, text.size() - (kilo ? 1 : 0));
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (kilo) value *= 1024;
  const bool parsed = error == std::errc() && end == digits.data() + digits.size();
  if (!parsed || !(value >= 0 && value <= argument.max) ||
      (argument.whole && value != std::floor(value))) {
    fail(fmt::format("profile '{}': {} needs a {}number from 0 to {}, given '{}'", profile,
                     argument.name, argument.whole ? "whole " : "", argument.max, text));
  }
  return value;
}

std::vector<double> parse_arguments(const Kind& kind, std::string_view list,
                                    std::string_view profile) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    words.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  if (words.size() < kind.min_arguments || words.size() > kind.arguments.size()) {
    fail(fmt::format("profile '{}': {} needs {}, given {} value{}", profile, kind.name, kind.usage,
                     words.size(), words.size() == 1 ? "" : "s"));
  }
  std::vector<double> values;
  for (std::size_t i = 0; i < words.size(); ++i) {
    values.push_back(parse_number(words[i], kind.arguments[i], profile));
  }
  return values;
}

Lengths read_lengths(const std::string& path) {
  std::ifstream file(path);
  if (!file) fail(fmt::format("profile 'file:{}': the file cannot be read", path));
  Lengths lengths;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    lengths.push_back(static_cast<std::int32_t>(parse_number(
        line, {"a line", true, kMaxLength}, fmt::format("file:{} line {}", path, number))));
  }
  if (lengths.empty()) {
    fail(fmt::format("profile 'file:{}': needs one length per line, given none", path));
  }
  return lengths;
}

}  // namespace

Profile Profile::parse(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  Profile profile;
  profile.text_ = text;
  profile.kind_ = text.substr(0, colon);
  const std::string_view rest = text.substr(std::min(colon + 1, text.size()));
  if (profile.kind_ == "file") {
    profile.file_lengths_ = read_lengths(std::string(rest));
    return profile;
  }
  const Kind* kind = find_kind(profile.kind_);
  if (kind == nullptr) {
    std::string names;
    for (const Kind& known : kinds()) names += fmt::format("{}, ", known.usage);
    fail(fmt::format("profile '{}': needs one of {}file:path", text, names));
  }
  profile.arguments_ = parse_arguments(*kind, rest, text);
  if (kind->name == "lognormal" && profile.arguments_.size() == 4 &&
      profile.arguments_[2] > profile.arguments_[3]) {
    fail(fmt::format("profile '{}': needs min <= max, given {} and {}", text, profile.arguments_[2],
                     profile.arguments_[3]));
  }
  return profile;
}

bool Profile::fixes_batch() const { return kind_ == "file" || find_kind(kind_)->fixes_batch; }

std::vector<std::int32_t> Profile::lengths(std::int32_t batch, std::uint64_t seed) const {
  if (kind_ == "file") return file_lengths_;
  Random random(seed);
  return find_kind(kind_)->generate(arguments_, static_cast<std::size_t>(batch), random);
}

std::string profiles_help() {
  std::string text;
  for (const Kind& kind : kinds()) text += fmt::format("  {:<34}{}\n", kind.usage, kind.help);
  return text + fmt::format("  {:<34}{}\n", "file:path", "lengths, one per line");
}

}  // namespace headrace::bench
