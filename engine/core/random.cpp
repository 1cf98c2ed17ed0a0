#include "gradsync/core/random.hpp"

#include <bit>
#include <cmath>

namespace gradsync {
namespace {

/// ln(x) of a positive normal number, within 2 ulp. The C library's log differs between machines.
double natural_log(double x) noexcept {
  // x = mantissa * 2^exponent with the mantissa in [sqrt(1/2), sqrt(2)).
  const auto word = std::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<double>(static_cast<std::int64_t>(word >> 52) - 1023);
  double mantissa = std::bit_cast<double>((word & 0x000fffffffffffffu) | 0x3ff0000000000000u);
  if (mantissa > 0x1.6a09e667f3bcdp+0) {  // sqrt(2)
    mantissa /= 2;
    exponent += 1;
  }
  // ln(m) = 2 artanh(z) = 2 (z + z^3/3 + z^5/5 + ...), |z| <= 0.172: eleven terms reach 2^-53.
  const double z = (mantissa - 1) / (mantissa + 1);
  const double z2 = z * z;
  double series = 0;
  for (int odd = 21; odd >= 3; odd -= 2) series = (series + 1.0 / odd) * z2;
  return exponent * 0x1.62e42fefa39efp-1 + 2 * (z + z * series);  // ln(2)
}

}  // namespace

double portable_exp(double x) noexcept {
  // x = k ln(2) + r with |r| <= ln(2) / 2. ln(2) is split in two parts; k times the first is exact.
  constexpr double kLn2High = 0x1.62e42fefap-1;
  constexpr double kLn2Low = 0x1.cf79abc9e3b39p-40;
  const double k = std::floor(x * 0x1.71547652b82fep+0 + 0.5);
  const double r = (x - k * kLn2High) - k * kLn2Low;
  // The series in Horner form; sixteen terms reach 2^-60.
  double series = 1;
  for (int term = 16; term >= 1; --term) series = 1 + series * r / term;
  return std::ldexp(series, static_cast<int>(k));
}

double CounterRandom::normal(std::uint64_t index) const noexcept {
  // Marsaglia's polar method. Each index has its own stream of candidate pairs, so that a rejection
  // does not shift later numbers.
  std::uint64_t draw = splitmix64(~bits(index));
  for (;;) {
    // Two odd multiples of 2^-32 in (-1, 1), from the two halves of a word; never zero.
    const auto part = [](std::uint64_t half) {
      return (static_cast<double>(half & 0xffffffffu) + 0.5) * 0x1p-31 - 1;
    };
    const double u = part(draw), v = part(draw >> 32);
    const double s = u * u + v * v;
    if (s < 1) return u * std::sqrt(-2 * natural_log(s) / s);
    draw = splitmix64(draw);
  }
}

}  // namespace gradsync
