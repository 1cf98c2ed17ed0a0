#include "gradsync/predict/minimize.hpp"

#include <cmath>

namespace gradsync {
namespace {

constexpr double kGolden = 0.6180339887498949;
constexpr int kSections = 12;  // narrow the interval to 0.3%

/// Least value of `function` between `low` and `high`, and where it is.
struct Least {
  double at;
  double value;
};
Least golden_section(const std::function<double(double)>& function, double low, double high) {
  double a = high - kGolden * (high - low), b = low + kGolden * (high - low);
  double at_a = function(a), at_b = function(b);
  for (int k = 0; k < kSections; ++k) {
    if (at_a < at_b) {
      high = b;
      b = a;
      at_b = at_a;
      at_a = function(a = high - kGolden * (high - low));
    } else {
      low = a;
      a = b;
      at_a = at_b;
      at_b = function(b = low + kGolden * (high - low));
    }
  }
  return at_a < at_b ? Least{a, at_a} : Least{b, at_b};
}

}  // namespace

std::vector<double> minimize(const std::function<double(const std::vector<double>&)>& function,
                             std::vector<double> start, int rounds) {
  double least = function(start);
  double reach = std::log(30.0);
  for (int round = 0; round < rounds; ++round, reach /= 3) {
    for (double& number : start) {
      const double centre = std::log(number);
      const double before = number;
      const Least found = golden_section(
          [&](double logarithm) {
            number = std::exp(logarithm);
            return function(start);
          },
          centre - reach, centre + reach);
      number = found.value < least ? std::exp(found.at) : before;
      if (found.value < least) least = found.value;
    }
  }
  return start;
}

}  // namespace gradsync
