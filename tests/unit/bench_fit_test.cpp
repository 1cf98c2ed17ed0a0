// Reading benchmark logs, and the lines through them.
#include <cmath>

#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/predict/bench_log.hpp"
#include "gradsync/predict/fit.hpp"
#include "tests/support/catch.hpp"

namespace gradsync {
namespace {

using test::Approx;
using test::contains;

// The form of nccl-tests 2.12 and later, with the root column and both placements.
const std::string kNewLog =
    "# nThread 1 nGpus 8 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 5\n"
    "#\n# Using devices\n"
    "#  Rank  0 Group  0 Pid   4711 on  node-1 device  0 [0x0f] NVIDIA A100-SXM4-40GB\n"
    "#  Rank  1 Group  0 Pid   4711 on  node-1 device  1 [0x15] NVIDIA A100-SXM4-40GB\n"
    "#\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
    "time\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "
    "(us)\n"
    "     1048576        262144     float     sum      -1     76.7   13.67   23.92      0     75.2 "
    "  "
    "13.94   24.40      0\n"
    "     2097152        524288     float     sum      -1    112.4   18.66   32.66    N/A    110.1 "
    "  "
    "19.05   33.33    N/A\n"
    "     4194304       1048576     float     sum      -1      N/A     N/A     N/A    N/A    134.5 "
    "  "
    "31.18   54.57      0\n"
    "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 37.05\n";

// Before 2.12: no root, an error in place of #wrong.
const std::string kOldLog =
    "#       size         count    type   redop     time   algbw   busbw     error     time\n"
    "     1048576        262144   float     sum     89.3   11.75   20.56  1e-07     88.0   11.9   "
    "20.8  1e-07\n";

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

TEST_CASE("bench log: nccl-tests' text of today") {
  const BenchTable table = read_bench_log(kNewLog, "log");
  CHECK(table.program == "nccl-tests");
  CHECK(table.ranks == 2);
  REQUIRE(table.rows.size() == 3);
  CHECK(table.rows[0].bytes == 1048576);
  CHECK(table.rows[0].count == 262144);
  CHECK(table.rows[0].time.count() == Approx(76.7e-6));  // out of place
  CHECK(table.rows[0].wrong == 0);
  CHECK_FALSE(table.rows[1].wrong.has_value());
  CHECK(table.rows[2].time.count() == Approx(134.5e-6));  // in place: the other was not measured
  CHECK(read_bench_log(kNewLog, "log", 8).ranks == 8);
}

TEST_CASE("bench log: nccl-tests' text of 2019, which does not say the ranks on its rows") {
  CHECK_THROWS_WITH(read_bench_log(kOldLog, "old.txt"), contains("--ranks"));
  const BenchTable table = read_bench_log(kOldLog, "old.txt", 8);
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0].time.count() == Approx(89.3e-6));
  CHECK_FALSE(table.rows[0].wrong.has_value());
}

TEST_CASE("bench log: what gradsync bench writes is read back, text and JSON") {
  BenchTable table{"gradsync bench allreduce on gloo", 4, rows_on_a_line(1e-4, 1e9, 1024, 8192)};
  for (BenchRow& row : table.rows) {
    row.count = row.bytes / 4;
    row.type = "float";
    row.wrong = 0;
  }
  std::string text = bench_heading(table.program, table.ranks);
  for (const BenchRow& row : table.rows) text += bench_line(row, table.ranks);
  text += bench_footer(table);
  for (const std::string& log : {text, to_json(table).dump()}) {
    const BenchTable back = read_bench_log(log, "log");
    CHECK(back.program == table.program);
    CHECK(back.ranks == 4);
    REQUIRE(back.rows.size() == table.rows.size());
    for (std::size_t i = 0; i < back.rows.size(); ++i) {
      CHECK(back.rows[i].bytes == table.rows[i].bytes);
      CHECK(back.rows[i].time.count() == Approx(table.rows[i].time.count()).epsilon(1e-3));
      CHECK(back.rows[i].wrong == 0);
    }
  }
}

TEST_CASE("bench log: the JSON of nccl-tests -J") {
  const std::string json = R"({"config": {"devices": [{"rank": 0}, {"rank": 1}]},
    "results": [{"size": 1024, "count": 256, "type": "float", "redop": "sum", "root": "-1",
      "out_of_place": {"time": 40.5, "alg_bw": 0.03, "bus_bw": 0.03, "nwrong": 0},
      "in_place": {"time": 39.0, "alg_bw": 0.03, "bus_bw": 0.03, "nwrong": 0}}]})";
  const BenchTable table = read_bench_log(json, "log.json");
  CHECK(table.ranks == 2);
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0].time.count() == Approx(40.5e-6));
}

TEST_CASE("bench log: what is wrong is named with its place") {
  CHECK_THROWS_WITH(read_bench_log("nothing here\n", "a.txt"), contains("a.txt"));
  CHECK_THROWS_WITH(read_bench_log("{\"results\": [{}]}", "b.json"), contains("/results/0"));
  CHECK_THROWS_WITH(read_bench_log("{]", "c.json"), contains("not JSON"));
  CHECK_THROWS_WITH(read_bench_log("8 2 float sum -1 bad 0 0 0\n", "d.txt", 2), contains("line 1"));
}

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
