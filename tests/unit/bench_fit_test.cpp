// The lines through a benchmark's table.
#include <cmath>

#include "gradsync/core/error.hpp"
#include "gradsync/predict/fit.hpp"
#include "tests/support/catch.hpp"

namespace gradsync {
namespace {

using test::Approx;
using test::contains;

std::vector<BenchRow> rows_on_a_line(double latency, double rate, Bytes first, Bytes last) {
  std::vector<BenchRow> rows;
  for (Bytes bytes = first; bytes <= last; bytes *= 2) {
    BenchRow row;
    row.bytes = bytes;
    row.time = Seconds(latency + static_cast<double>(bytes) / rate);
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

TEST_CASE("fit: one line is found exactly, with no margin and no second segment") {
  const PiecewiseFit fit(rows_on_a_line(30e-6, 2e11, 8, 1 << 28));
  REQUIRE(fit.segments().size() == 1);
  const FitSegment& segment = fit.segments()[0];
  CHECK(segment.latency.value == Approx(30e-6));
  CHECK(1 / segment.seconds_per_byte.value == Approx(2e11));
  CHECK(segment.latency.margin < 1e-9);
  CHECK(fit.rms_residual() < 1e-9);
  const FitPrediction inside = fit.predict(1 << 20);
  CHECK(inside.time.count() == Approx(30e-6 + 1048576 / 2e11));
  CHECK_FALSE(inside.extrapolated);
  CHECK(fit.predict(4).extrapolated);
  CHECK(fit.predict(1 << 29).extrapolated);
}

TEST_CASE("fit: two regimes are told apart where they meet") {
  auto rows = rows_on_a_line(20e-6, 2e10, 1024, 1 << 20);
  const auto large = rows_on_a_line(200e-6, 2e11, 1 << 21, 1 << 28);
  rows.insert(rows.end(), large.begin(), large.end());
  const PiecewiseFit fit(rows);
  REQUIRE(fit.segments().size() == 2);
  CHECK(fit.segments()[0].last == 1 << 20);
  CHECK(fit.segments()[1].first == 1 << 21);
  CHECK(fit.segments()[0].latency.value == Approx(20e-6));
  CHECK(fit.segments()[1].latency.value == Approx(200e-6));
  CHECK(fit.predict(1 << 20).time.count() == Approx(rows[10].time.count()));
  CHECK(fit.predict(1 << 21).time.count() == Approx(large[0].time.count()));
  const std::string text = describe(fit, 8);
  CHECK_THAT(text, contains("residuals over all sizes"));
}

TEST_CASE("fit: a measured table, with margins that hold what noise does to it") {
  // 5% of alternating noise on a known line.
  auto rows = rows_on_a_line(50e-6, 1e10, 1024, 1 << 24);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].time *= i % 2 == 0 ? 1.05 : 0.95;
  const PiecewiseFit fit(rows, 1);
  const FitSegment& segment = fit.segments()[0];
  CHECK(std::abs(segment.latency.value - 50e-6) < segment.latency.margin);
  CHECK(std::abs(segment.seconds_per_byte.value - 1e-10) < segment.seconds_per_byte.margin);
  CHECK(segment.latency.margin < 10e-6);
  CHECK(fit.rms_residual() == Approx(0.05).epsilon(0.1));
  CHECK(std::abs(fit.worst_residual()) < 0.1);
}

TEST_CASE("fit: three sizes of a pipelined collective predict those between them") {
  std::vector<BenchRow> rows;
  for (const Bytes mib : {1, 32, 1024}) {
    BenchRow row;
    row.bytes = mib << 20;
    const auto size = static_cast<double>(row.bytes);
    row.time = Seconds(20e-6 + size / 400e9 + std::sqrt(size) * 1e-8);
    rows.push_back(row);
  }
  const PiecewiseFit fit(rows);
  REQUIRE(fit.segments().size() == 1);
  CHECK(fit.segments()[0].seconds_per_root_byte == Approx(1e-8).epsilon(1e-3));
  for (const Bytes mib : {2, 8, 128, 4096}) {
    const auto size = static_cast<double>(mib << 20);
    CHECK(fit.predict(mib << 20).time.count() ==
          Approx(20e-6 + size / 400e9 + std::sqrt(size) * 1e-8).epsilon(1e-3));
  }
  CHECK_THAT(describe(fit, 8), contains("bent"));
}

TEST_CASE("fit: a wild measurement does not drag the line along") {
  auto rows = rows_on_a_line(50e-6, 1e10, 1024, 1 << 28);
  rows[9].time *= 20;
  const PiecewiseFit fit(rows, 1);
  CHECK(fit.segments()[0].latency.value == Approx(50e-6).epsilon(0.05));
  CHECK(1 / fit.segments()[0].seconds_per_byte.value == Approx(1e10).epsilon(0.05));
}

TEST_CASE("fit: no line has a negative latency, and too little is refused") {
  std::vector<BenchRow> rows = rows_on_a_line(0, 1e9, 1 << 20, 1 << 26);
  for (BenchRow& row : rows) row.time *= std::pow(static_cast<double>(row.bytes), 0.05);
  const PiecewiseFit fit(rows);
  for (const FitSegment& segment : fit.segments()) {
    CHECK(segment.latency.value >= 0);
    CHECK(segment.seconds_per_byte.value >= 0);
  }
  rows.resize(2);
  CHECK_THROWS_AS(PiecewiseFit(rows), Error);
  rows = rows_on_a_line(1e-6, 1e9, 8, 64);
  rows[0].time = Seconds(0);
  CHECK_THROWS_AS(PiecewiseFit(rows), Error);
}

}  // namespace gradsync
