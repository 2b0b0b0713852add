// Every code of every small type; bf16 and float32 also against the machine's own float.
#include "tests/reference/dtypes.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tests/catch.h"

namespace headrace::tests {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The codes of the finite values >= 0: 0 to largest, inclusive.
struct SmallType {
  headrace_dtype dtype;
  std::uint32_t largest;
  std::uint32_t sign;
};
constexpr SmallType kSmallTypes[] = {{HEADRACE_BFLOAT16, 0x7f7f, 0x8000},
                                     {HEADRACE_FLOAT16, 0x7bff, 0x8000},
                                     {HEADRACE_FLOAT8_E4M3, 0x7e, 0x80}};

TEST_CASE("reference: known codes") {
  CHECK(decode(HEADRACE_BFLOAT16, 0x3f80) == 1.0);
  CHECK(decode(HEADRACE_BFLOAT16, 0xc040) == -3.0);
  CHECK(decode(HEADRACE_FLOAT16, 0x3c00) == 1.0);
  CHECK(decode(HEADRACE_FLOAT16, 0x0001) == 0x1p-24);
  CHECK(decode(HEADRACE_FLOAT16, 0x0400) == 0x1p-14);
  CHECK(decode(HEADRACE_FLOAT16, 0x7bff) == 65504.0);
  CHECK(decode(HEADRACE_FLOAT16, 0xfc00) == -kInfinity);
  CHECK(decode(HEADRACE_FLOAT8_E4M3, 0x01) == 0x1p-9);
  CHECK(decode(HEADRACE_FLOAT8_E4M3, 0x08) == 0x1p-6);
  CHECK(decode(HEADRACE_FLOAT8_E4M3, 0x38) == 1.0);
  CHECK(decode(HEADRACE_FLOAT8_E4M3, 0xb9) == -1.125);
  CHECK(decode(HEADRACE_FLOAT8_E4M3, 0x7e) == 448.0);
  CHECK(std::isnan(decode(HEADRACE_FLOAT8_E4M3, 0x7f)));
  CHECK(std::isnan(decode(HEADRACE_FLOAT8_E4M3, 0xff)));
  CHECK(std::signbit(decode(HEADRACE_FLOAT8_E4M3, 0x80)));
}

TEST_CASE("reference: bf16 is the upper half of a float32") {
  for (std::uint32_t code = 0; code <= 0xffff; ++code) {
    const float expected = std::bit_cast<float>(code << 16);
    const double value = decode(HEADRACE_BFLOAT16, code);
    const bool same = std::isnan(expected) ? std::isnan(value) : value == expected;
    if (!same) FAIL("code " << code << " is " << value << ", not " << expected);
  }
}

TEST_CASE("reference: float32 is the machine's") {
  // Every 65521st code (a prime) meets every exponent many times.
  for (std::uint64_t step = 0; step <= 0xffffffffu; step += 65521) {
    const auto code = static_cast<std::uint32_t>(step);
    const auto expected = std::bit_cast<float>(code);
    const double value = decode(HEADRACE_FLOAT32, code);
    if (std::isnan(expected)) {
      if (!std::isnan(value)) FAIL("code " << code << " is " << value << ", not NaN");
    } else if (value != expected || encode(HEADRACE_FLOAT32, value) != code) {
      FAIL("code " << code << " is " << value << ", not " << expected);
    }
  }
}

TEST_CASE("reference: every code is encoded back to itself") {
  for (const SmallType& type : kSmallTypes) {
    for (std::uint32_t code = 0; code < 2 * type.sign; ++code) {
      const double value = decode(type.dtype, code);
      const std::uint32_t back = encode(type.dtype, value);
      const bool same = std::isnan(value) ? std::isnan(decode(type.dtype, back)) : back == code;
      if (!same) FAIL("dtype " << type.dtype << " code " << code << " comes back as " << back);
    }
  }
}

TEST_CASE("reference: values between two codes go to the nearer, ties to the even one") {
  for (const SmallType& type : kSmallTypes) {
    for (std::uint32_t code = 0; code < type.largest; ++code) {
      const double low = decode(type.dtype, code);
      const double high = decode(type.dtype, code + 1);
      const double middle = (low + high) / 2;
      const std::uint32_t even = code % 2 == 0 ? code : code + 1;
      const bool right = low < high && high - low == 2 * half_ulp(type.dtype, low) &&
                         encode(type.dtype, std::nextafter(middle, 0)) == code &&
                         encode(type.dtype, middle) == even &&
                         encode(type.dtype, std::nextafter(middle, kInfinity)) == code + 1 &&
                         encode(type.dtype, -middle) == (even | type.sign);
      if (!right) FAIL("dtype " << type.dtype << " between codes " << code << " and " << code + 1);
    }
  }
}

TEST_CASE("reference: beyond the largest value") {
  CHECK(encode(HEADRACE_BFLOAT16, 3.5e38) == 0x7f80);
  CHECK(encode(HEADRACE_FLOAT16, 65519.9) == 0x7bff);
  CHECK(encode(HEADRACE_FLOAT16, 65520.0) == 0x7c00);
  CHECK(encode(HEADRACE_FLOAT16, -kInfinity) == 0xfc00);
  CHECK(encode(HEADRACE_FLOAT8_E4M3, 1e6) == 0x7e);
  CHECK(encode(HEADRACE_FLOAT8_E4M3, -kInfinity) == 0xfe);
}

TEST_CASE("reference: rows of a tensor are read and written where they lie") {
  for (const headrace_dtype dtype :
       {HEADRACE_BFLOAT16, HEADRACE_FLOAT16, HEADRACE_FLOAT32, HEADRACE_FLOAT8_E4M3}) {
    std::vector<std::byte> tensor(10 * dtype_bytes(dtype));
    const std::vector<float> row = {1.5f, -0.25f, 448.0f};
    store_row(dtype, tensor, 4, row);
    fill_row(dtype, tensor, 8, 2, encode(dtype, 2.0));
    std::vector<float> all(10);
    load_row(dtype, tensor, 0, all);
    CHECK(all == std::vector<float>{0, 0, 0, 0, 1.5f, -0.25f, 448.0f, 0, 2.0f, 2.0f});
  }
}

}  // namespace
}  // namespace headrace::tests
