// Profiles: exact lengths for seeds, clipping, and messages for what cannot be parsed.
#include "bench/profiles.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace headrace::bench {
namespace {

using Lengths = std::vector<std::int32_t>;

Lengths lengths(const std::string& text, std::int32_t batch, std::uint64_t seed = 1) {
  return Profile::parse(text).lengths(batch, seed);
}

std::string error_of(const std::string& text) {
  try {
    Profile::parse(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("uniform lengths are all alike, k is 1024") {
  CHECK(lengths("uniform:100", 3) == Lengths{100, 100, 100});
  CHECK(lengths("uniform:8k", 2) == Lengths{8192, 8192});
  CHECK(lengths("uniform:0", 1) == Lengths{0});
}

TEST_CASE("a seed names a lognormal batch") {
  CHECK(lengths("lognormal:1000,1.2", 6, 1) == Lengths{1524, 3681, 2578, 3348, 357, 614});
  CHECK(lengths("lognormal:1000,1.2", 6, 2) == Lengths{4613, 6509, 1826, 2001, 905, 5552});
}

TEST_CASE("lognormal lengths have the median and deviation asked for") {
  Lengths values = lengths("lognormal:1000,0.5,0,1000000", 20001);
  std::sort(values.begin(), values.end());
  // One deviation above the median lie 15.87 %, below it as many.
  CHECK(values[10000] > 985);
  CHECK(values[10000] < 1015);
  CHECK(values[16827] > 1.62 * values[10000]);
  CHECK(values[16827] < 1.68 * values[10000]);
  CHECK(values[3174] < 0.62 * values[10000]);
  CHECK(values[3174] > 0.59 * values[10000]);
}

TEST_CASE("lognormal lengths are clipped") {
  const Lengths values = lengths("lognormal:1000,2,900,1100", 1000);
  CHECK(*std::min_element(values.begin(), values.end()) == 900);
  CHECK(*std::max_element(values.begin(), values.end()) == 1100);
  const Lengths wild = lengths("lognormal:100000,4", 1000);
  CHECK(*std::min_element(wild.begin(), wild.end()) >= 1);
  CHECK(*std::max_element(wild.begin(), wild.end()) == 131072);
}

TEST_CASE("one-long fixes the batch") {
  CHECK(Profile::parse("one-long:128k,3,2k").fixes_batch());
  CHECK(lengths("one-long:128k,3,2k", 100) == Lengths{131072, 2048, 2048, 2048});
  CHECK(lengths("one-long:7,0,5", 100) == Lengths{7});
  CHECK_FALSE(Profile::parse("uniform:5").fixes_batch());
}

TEST_CASE("bimodal has the exact share of long requests at random places") {
  const Lengths values = lengths("bimodal:10,1000,0.25", 40, 1);
  CHECK(std::count(values.begin(), values.end(), 1000) == 10);
  CHECK(std::count(values.begin(), values.end(), 10) == 30);
  CHECK(values != lengths("bimodal:10,1000,0.25", 40, 2));
  CHECK(lengths("bimodal:10,1000,0", 2) == Lengths{10, 10});
  CHECK(lengths("bimodal:10,1000,1", 2) == Lengths{1000, 1000});
}

TEST_CASE("zipf lengths fall with the rank, down to the minimum") {
  Lengths values = lengths("zipf:1200,1,250", 6);
  std::sort(values.rbegin(), values.rend());
  CHECK(values == Lengths{1200, 600, 400, 300, 250, 250});
}

TEST_CASE("file gives one request per line") {
  const std::string name = "headrace_lengths_" + std::to_string(getpid());
  const std::string path = std::filesystem::temp_directory_path() / name;
  std::ofstream(path) << "5\n\n4k\n0\n";
  CHECK(Profile::parse("file:" + path).fixes_batch());
  CHECK(lengths("file:" + path, 9) == Lengths{5, 4096, 0});
  std::ofstream(path) << "5\n-1\n";
  CHECK(contains(error_of("file:" + path), "line 2"));
  CHECK(contains(error_of("file:" + path), "given '-1'"));
  std::ofstream(path) << "";
  CHECK(contains(error_of("file:" + path), "needs one length per line, given none"));
  std::filesystem::remove(path);
  CHECK(contains(error_of("file:" + path), "cannot be read"));
}

TEST_CASE("errors name what is needed and what was given") {
  CHECK(contains(error_of("normal:5"), "profile 'normal:5': needs one of uniform:len, lognormal:"));
  CHECK(contains(error_of("uniform"), "len needs a whole number from 0 to 2147483647, given ''"));
  CHECK(contains(error_of("uniform:1,2"), "uniform needs uniform:len, given 2 values"));
  CHECK(contains(error_of("lognormal:1000"), "given 1 value"));
  CHECK(contains(error_of("uniform:12x"), "given '12x'"));
  CHECK(contains(error_of("uniform:1.5"), "given '1.5'"));
  CHECK(contains(error_of("uniform:-1"), "given '-1'"));
  CHECK(contains(error_of("uniform:2147483648"), "given '2147483648'"));
  CHECK(contains(error_of("uniform:nan"), "given 'nan'"));
  CHECK(contains(error_of("bimodal:1,2,1.5"), "fraction_long needs a number from 0 to 1"));
  CHECK(contains(error_of("lognormal:5,1,20,10"), "needs min <= max, given 20 and 10"));
}

}  // namespace
}  // namespace headrace::bench
