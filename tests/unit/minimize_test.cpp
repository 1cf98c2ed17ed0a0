// Numbers that make a function least.
#include "gradsync/predict/minimize.hpp"

#include <cmath>
#include <stdexcept>

#include "tests/support/catch.hpp"

namespace gradsync {

using test::Approx;

TEST_CASE("minimize finds two numbers of very different scale, also with jumps between") {
  const auto valley = [](const std::vector<double>& x) {
    const double jump = x[1] > 1e11 ? 0 : 0.5;
    return std::pow(std::log(x[0] / 3e-6), 2) + std::pow(std::log(x[1] / 2e11), 2) + 1 + jump;
  };
  const auto found = minimize(valley, {{1e-5, 1e-8, 1e-2}, {5e10, 1e6, 1e12}}, 300);
  CHECK(found[0] == Approx(3e-6).epsilon(0.02));
  CHECK(found[1] == Approx(2e11).epsilon(0.02));
}

TEST_CASE("minimize stays within its bounds, is never worse than its start, and lets errors pass") {
  const auto falls = [](const std::vector<double>& x) { return 1 / x[0]; };
  CHECK(minimize(falls, {{1, 0.5, 4}}).at(0) == Approx(4).epsilon(0.01));
  CHECK(minimize(falls, {{9, 0.5, 4}}).at(0) == Approx(4).epsilon(0.01));  // from out of bounds
  const auto spike = [](const std::vector<double>& x) {
    return std::abs(x[0] - 1) < 1e-9 ? 0.0 : 1.0;
  };
  CHECK(minimize(spike, {{1, 1e-3, 1e3}}).at(0) == Approx(1));
  const auto throws = [](const std::vector<double>& x) -> double {
    if (x[0] > 2) throw std::runtime_error("too much");
    return 1 / x[0];
  };
  CHECK_THROWS_AS(minimize(throws, {{1, 0.5, 4}}), std::runtime_error);
}

TEST_CASE("a relative fit has no negative coefficients, and outliers do not drag it along") {
  // 20 + 3 s, of which one measurement is ten times as long.
  std::vector<std::vector<double>> rows;
  for (double s = 1; s <= 1000; s *= 2) {
    const double time = (20 + 3 * s) * (s == 32 ? 10 : 1);
    rows.push_back({1 / time, s / time});
  }
  const RelativeFit fit = fit_relative(rows);
  CHECK(fit.coefficients[0] == Approx(20).epsilon(0.03));
  CHECK(fit.coefficients[1] == Approx(3).epsilon(0.03));
  CHECK(fit.weights[5] < 0.2);

  rows.clear();
  for (double s = 1; s <= 1000; s *= 2) rows.push_back({1 / (s * s), s / (s * s)});
  for (const double coefficient : fit_relative(rows).coefficients) CHECK(coefficient >= 0);
}

}  // namespace gradsync
