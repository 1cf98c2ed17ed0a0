#include "gradsync/comm/reduce_functions.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gradsync/core/float16.hpp"
#include "tests/support/catch.hpp"

namespace gradsync {
namespace {

template <typename T>
std::vector<T> reduced(ReduceOp op, DType dtype, const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> out(a.size());
  reduce_function(op, dtype)(out.data(), a.data(), b.data(), a.size());
  std::vector<T> in_place_a = a;
  reduce_function(op, dtype)(in_place_a.data(), in_place_a.data(), b.data(), a.size());
  std::vector<T> in_place_b = b;
  reduce_function(op, dtype)(in_place_b.data(), a.data(), in_place_b.data(), a.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    CHECK(out[i] == in_place_a[i]);
    CHECK(out[i] == in_place_b[i]);
  }
  return out;
}

/// The value of a binary16 pattern from its definition, with doubles.
double half_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const double mantissa = bits & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

bool is_half_nan(std::uint16_t bits) {
  return (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0;
}

}  // namespace

TEST_CASE("reduce functions add, compare and wrap in every dtype", "[comm]") {
  CHECK(reduced<float>(ReduceOp::kSum, DType::kFloat32, {1.5f, -2.0f, 1e8f}, {0.25f, 2.0f, 1.0f}) ==
        std::vector<float>{1.75f, 0.0f, 1e8f});
  CHECK(reduced<double>(ReduceOp::kSum, DType::kFloat64, {0.1}, {0.2}) ==
        std::vector<double>{0.1 + 0.2});
  CHECK(reduced<std::int32_t>(ReduceOp::kSum, DType::kInt32,
                              {7, std::numeric_limits<std::int32_t>::max()}, {-9, 1}) ==
        std::vector<std::int32_t>{-2, std::numeric_limits<std::int32_t>::min()});
  CHECK(reduced<std::int64_t>(ReduceOp::kMax, DType::kInt64, {-1, 5}, {-2, 6}) ==
        std::vector<std::int64_t>{-1, 6});
  CHECK(reduced<std::uint8_t>(ReduceOp::kSum, DType::kUInt8, {250, 1}, {10, 1}) ==
        std::vector<std::uint8_t>{4, 2});
  CHECK(reduced<std::uint8_t>(ReduceOp::kMin, DType::kUInt8, {250, 1}, {10, 200}) ==
        std::vector<std::uint8_t>{10, 1});
  CHECK(reduced<float>(ReduceOp::kMax, DType::kFloat32, {1, -1}, {2, -2}) ==
        std::vector<float>{2, -1});
}

TEST_CASE("bfloat16 and float16 sums round to nearest even once an addition", "[comm]") {
  // 1 + 2^-8 lies between 1 and 1 + 2^-7 in bfloat16: the tie goes to the even mantissa, 1.
  const std::uint16_t one = 0x3f80;
  const std::uint16_t half_ulp = float_to_bfloat16(0x1p-8f);
  CHECK(reduced<std::uint16_t>(ReduceOp::kSum, DType::kBFloat16, {one, 0x3f81},
                               {half_ulp, half_ulp}) == std::vector<std::uint16_t>{one, 0x3f82});
  const std::uint16_t half_one = 0x3c00;
  const std::uint16_t tie = float_to_float16(0x1p-11f);
  CHECK(reduced<std::uint16_t>(ReduceOp::kSum, DType::kFloat16, {half_one, 0x3c01}, {tie, tie}) ==
        std::vector<std::uint16_t>{half_one, 0x3c02});
  // 65504 is the largest float16; the sum overflows to infinity.
  CHECK(reduced<std::uint16_t>(ReduceOp::kSum, DType::kFloat16, {0x7bff}, {0x7bff}) ==
        std::vector<std::uint16_t>{0x7c00});
  CHECK(reduced<std::uint16_t>(ReduceOp::kMax, DType::kFloat16, {0xbc00, 0x0001},
                               {0x3c00, 0x8001}) == std::vector<std::uint16_t>{0x3c00, 0x0001});
}

TEST_CASE("float16 conversion is exact in one direction and nearest in the other", "[core]") {
  for (unsigned pattern = 0; pattern < 0x10000; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const float widened = float16_to_float(bits);
    if (is_half_nan(bits)) {
      REQUIRE(std::isnan(widened));
      REQUIRE(is_half_nan(float_to_float16(widened)));
      continue;
    }
    REQUIRE(float_to_float16(widened) == bits);
    if ((bits & 0x7c00) == 0x7c00) {
      REQUIRE(std::isinf(widened));
    } else {
      REQUIRE(static_cast<double>(widened) == half_value(bits));
    }
  }
  // Halfway between neighbours: to the even pattern; a hair to either side: to the nearer one.
  for (unsigned pattern = 0; pattern < 0x7bff; ++pattern) {
    const auto below = static_cast<std::uint16_t>(pattern);
    const auto above = static_cast<std::uint16_t>(pattern + 1);
    const auto middle = static_cast<float>((half_value(below) + half_value(above)) / 2);
    const auto even = (below & 1) == 0 ? below : above;
    REQUIRE(float_to_float16(middle) == even);
    REQUIRE(float_to_float16(std::nextafter(middle, 0.0f)) == below);
    REQUIRE(float_to_float16(std::nextafter(middle, 1e9f)) == above);
  }
  CHECK(float_to_float16(65519.0f) == 0x7bff);
  CHECK(float_to_float16(65520.0f) == 0x7c00);
  CHECK(float_to_float16(-1e30f) == 0xfc00);
}

TEST_CASE("bfloat16 conversion keeps the exponent range and rounds to nearest even", "[core]") {
  for (unsigned pattern = 0; pattern < 0x10000; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const float widened = bfloat16_to_float(bits);
    if (std::isnan(widened)) {
      REQUIRE(std::isnan(bfloat16_to_float(float_to_bfloat16(widened))));
    } else {
      REQUIRE(float_to_bfloat16(widened) == bits);
    }
  }
  CHECK(float_to_bfloat16(std::bit_cast<float>(0x3f808000u)) == 0x3f80);
  CHECK(float_to_bfloat16(std::bit_cast<float>(0x3f808001u)) == 0x3f81);
  CHECK(float_to_bfloat16(std::bit_cast<float>(0x3f818000u)) == 0x3f82);
  CHECK(float_to_bfloat16(std::numeric_limits<float>::max()) == 0x7f80);
}

}  // namespace gradsync
