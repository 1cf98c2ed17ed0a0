// Signs of a sick machine, runs taken together, and errors by size.
#include "gradsync/predict/outliers.hpp"

#include "gradsync/predict/repeats.hpp"
#include "gradsync/predict/size_ranges.hpp"
#include "tests/support/catch.hpp"

namespace gradsync {
namespace {

using test::Approx;
using test::contains;

constexpr Bytes kMiB = 1 << 20;

BenchTable table_of(const std::vector<double>& times_us) {
  BenchTable table{"bench", 4, {}};
  for (std::size_t i = 0; i < times_us.size(); ++i) {
    BenchRow row;
    row.bytes = Bytes{65536} << i;
    row.time = Seconds(times_us[i] * 1e-6);
    table.rows.push_back(row);
  }
  return table;
}

std::vector<std::string> noise_of(const std::vector<BenchTable>& runs) {
  const RepeatedBench bench = combine_runs(runs);
  return signs_of_noise(bench, fit_ring_cluster(bench.table, bench.table.ranks, "here"));
}

}  // namespace

TEST_CASE("outliers: a time that falls by more than a fifth while the size grows") {
  CHECK(outlier_signs({{8, kMiB, Seconds(1)}, {8, 2 * kMiB, Seconds(0.81)}}, {}).empty());
  const auto signs = outlier_signs({{8, 4 * kMiB, Seconds(0.79)},
                                    {8, 2 * kMiB, Seconds(0.9)},
                                    {8, kMiB, Seconds(1)},
                                    {8, 8 * kMiB, Seconds(0.8)}},
                                   {});
  REQUIRE(signs.size() == 1);
  CHECK_THAT(signs[0], contains("4194304 bytes take"));
  // Tables of several numbers of ranks: each by itself.
  CHECK(outlier_signs({{16, kMiB, Seconds(1)}, {8, 2 * kMiB, Seconds(0.1)}}, {}).empty());
}

TEST_CASE("outliers: less than half of what the data sheet promises, from 1 GiB on") {
  const Bytes gib = 1024 * kMiB;
  const auto seconds = [&](Bytes bytes, double busbw) {
    return Seconds(static_cast<double>(bytes) * 1.75 / busbw);
  };
  CHECK(outlier_signs({{8, gib, seconds(gib, 51e9)}}, {100e9}).empty());
  CHECK(outlier_signs({{8, gib / 2, seconds(gib / 2, 10e9)}}, {100e9}).empty());
  CHECK(outlier_signs({{8, gib, seconds(gib, 49e9)}}, {100e9}).size() == 1);
}

TEST_CASE("repeats: the median of runs, and what says that the machine was not quiet") {
  const BenchTable quiet = table_of({100, 120, 160, 240, 400, 720});
  BenchTable slow = quiet;
  for (BenchRow& row : slow.rows) row.time *= 1.1;
  const RepeatedBench bench = combine_runs({slow, quiet, quiet});
  CHECK(bench.table.rows[2].median->count() == Approx(160e-6));
  CHECK(bench.spread == Approx(0.1));
  CHECK(noise_of({slow, quiet, quiet}).empty());

  for (BenchRow& row : slow.rows) row.time *= 1.2;
  CHECK_THAT(noise_of({slow, quiet, quiet}).at(0), contains("the runs differ"));
  // 128 KiB slower than 4 MiB.
  CHECK_THAT(noise_of({table_of({100, 900, 160, 240, 400, 720})}).at(0),
             contains("the time falls with the size"));
  const auto wild = noise_of({table_of({100, 85, 300, 250, 1500, 1300})});
  CHECK_THAT(wild.at(0), contains("rms off the line"));

  const RingCluster ring = fit_ring_cluster(quiet, 4, "here");
  CHECK_THAT(ranges_of(ring, combine_runs({quiet})).at(0), contains("intra_node.bandwidth"));
}

TEST_CASE("size ranges: errors of latencies do not hide those of large sizes") {
  const auto row = [](Bytes bytes, double measured, double simulated) {
    AccuracyRow result;
    result.bytes = bytes;
    result.measured = Seconds(measured);
    result.simulated = Seconds(simulated);
    return result;
  };
  const auto errors = errors_by_size({row(8, 1, 2), row(65536, 1, 2), row(kMiB, 1, 1.1),
                                      row(64 * kMiB, 1, 0.5), row(65 * kMiB, 1, 1)});
  REQUIRE(errors.size() == 4);
  CHECK(errors[0].rows == 2);
  CHECK(errors[0].geometric_mean == Approx(1));
  CHECK(errors[1].range == "64 KiB to 1 MiB");
  CHECK(errors[2].worst == Approx(-0.5));
  CHECK(errors[3].geometric_mean == Approx(0));
  CHECK(errors_by_size({}).empty());
  CHECK(size_text(8) == "8 B");
  CHECK(size_text(8 * kMiB) == "8 MiB");
  CHECK(size_text(1536) == "1.5 KiB");
}

}  // namespace gradsync
