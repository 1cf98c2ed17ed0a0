// Published tables, budgets, and what is fitted.
#include <cmath>
#include <filesystem>
#include <fstream>

#include "gradsync/core/error.hpp"
#include "gradsync/predict/accuracy.hpp"
#include "gradsync/predict/ring_cluster.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"

namespace gradsync {
namespace {

using test::Approx;
using test::contains;

AccuracyTable table_of(const std::string& json) {
  const test::TemporaryDirectory directory;
  const auto file = directory.path() / "table.json";
  std::ofstream(file) << json;
  return load_accuracy_table(file);
}

const std::string kHead =
    R"("name": "t", "source": "s", "machines": "m", "scenario": {"ranks": 8}, )";

AccuracyRow row_of(Bytes bytes, double measured, double simulated) {
  AccuracyRow row;
  row.bytes = bytes;
  row.measured = Seconds(measured);
  row.simulated = Seconds(simulated);
  return row;
}

}  // namespace

TEST_CASE("accuracy table: times, bus bandwidths, and ranks of a row's own") {
  const AccuracyTable table =
      table_of("{" + kHead +
               R"("kind": "allreduce", "fitted": ["a"], "rows": [{"size": "1M", "time_us": 76.7},
      {"size": "2M", "busbw": 64.53}, {"size": "1G", "time_us": 5, "ranks": 16}]})");
  REQUIRE(table.rows.size() == 3);
  CHECK(table.rows[0].bytes == 1048576);
  CHECK(table.rows[0].measured.count() == Approx(76.7e-6));
  // The published algorithm bandwidth of that row is 36.87 GB/s.
  CHECK(2097152 / table.rows[1].measured.count() / 1e9 == Approx(36.87).epsilon(0.001));
  CHECK(table.rows[1].ranks == 8);
  CHECK(table.rows[2].ranks == 16);
}

TEST_CASE("accuracy table: what is wrong is named") {
  CHECK_THROWS_WITH(table_of("[]"), contains("a JSON object"));
  CHECK_THROWS_WITH(table_of("{" + kHead + R"("kind": "guess", "rows": []})"), contains("/kind"));
  CHECK_THROWS_WITH(table_of("{" + kHead + R"("kind": "allreduce", "fitted": ["a", "b", "c"],
                             "rows": []})"),
                    contains("two names at the most"));
  CHECK_THROWS_WITH(table_of("{" + kHead + R"("kind": "training", "rows": [{"what": "x"}]})"),
                    contains("step_ms"));
}

TEST_CASE("accuracy: the geometric mean error counts twice as long like half as long") {
  CHECK(geometric_mean_error({row_of(8, 1, 2), row_of(8, 1, 0.5)}) == Approx(1.0));
  CHECK(geometric_mean_error({row_of(8, 1, 1.1), row_of(8, 1, 1)}) == Approx(std::sqrt(1.1) - 1));
  CHECK(geometric_mean_error({}) == 0);
}

TEST_CASE("accuracy: parts of a table have budgets of their own, and no row hides a step time") {
  AccuracyTable table;
  table.name = "t";
  table.beyond_budget = "because";
  table.rows = {row_of(1 << 20, 1, 1.2), row_of(2 << 20, 1, 1.2)};
  auto groups = judge(table);
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].part == "above 1 MiB");
  CHECK_FALSE(groups[0].within);  // 20% > 10%
  CHECK(groups[0].beyond_budget == "because");
  CHECK(groups[1].within);  // 20% < 25%
  CHECK(groups[1].beyond_budget.empty());

  table.is_training = true;
  table.rows = {row_of(0, 1, 1.0), row_of(0, 1, 1.0), row_of(0, 1, 0.91)};
  groups = judge(table);
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].geometric_mean < 0.08);
  CHECK(groups[0].worst == Approx(-0.09));
  CHECK_FALSE(groups[0].within);
  CHECK_THAT(accuracy_text({table}, true), contains("BEYOND"));
  CHECK_THAT(accuracy_markdown({table}), contains("**beyond**"));
  CHECK(accuracy_json({table}).at("tables")[0].at("groups")[0].at("within") == false);
}

TEST_CASE("ring cluster: the hop of a ring that takes as long as was measured") {
  BenchTable table{"bench", 4, {}};
  const double latency = 25e-6, bandwidth = 1.2e9;
  for (Bytes bytes = 1024; bytes <= (64 << 20); bytes *= 4) {
    BenchRow row;
    row.bytes = bytes;
    row.time = Seconds(6 * (latency + static_cast<double>(bytes) / 4 / bandwidth));
    table.rows.push_back(row);
  }
  const RingCluster inside = fit_ring_cluster(table, 4, "here");
  CHECK(inside.range.first == 65536);  // by default the sizes of gradients
  CHECK(inside.hop.latency.count() == Approx(latency));
  CHECK(inside.hop.bandwidth.value == Approx(bandwidth));
  CHECK(inside.cluster.at("name") == "here");
  const auto link = inside.cluster.at("intra_node");
  CHECK(parse_duration(link.at("latency").get<std::string>()).count() == Approx(12.5e-6));
  CHECK(parse_bandwidth(link.at("bandwidth").get<std::string>()).value == Approx(1.2e9));
  const FitRange all{0, Bytes{1} << 40};
  const RingCluster machines = fit_ring_cluster(table, 1, "here", &all);
  CHECK(machines.range.first == 1024);
  CHECK(machines.cluster.at("inter_node") == link);
  CHECK_THAT(describe(machines, 4), contains("extrapolated"));
}

}  // namespace gradsync

TEST_CASE("accuracy: an outlier has errors, but no budget, and is in no mean") {
  AccuracyTable healthy;
  healthy.name = "healthy";
  healthy.rows = {row_of(1 << 24, 1, 1.05), row_of(1 << 25, 2, 2.1)};
  for (AccuracyRow& row : healthy.rows) row.left_out = row.measured * 1.2;
  healthy.left_out = nlohmann::ordered_json::object();
  AccuracyTable sick;
  sick.name = "sick";
  sick.outlier_signs = {"the time falls with the size"};
  sick.beyond_budget = "not said of an outlier";
  sick.rows = {row_of(1 << 24, 1, 5)};
  const AccuracyGroup group = judge(sick).front();
  CHECK(group.is_outlier);
  CHECK_FALSE(group.within);
  CHECK(group.beyond_budget.empty());
  CHECK_FALSE(judge(healthy).front().within);  // 5%, but 20% cross-validated
  const std::vector<AccuracySummary> parts = summarize({healthy, sick});
  REQUIRE(parts.size() == 1);
  CHECK(parts[0].tables == 1);
  CHECK(parts[0].geometric_mean == Approx(0.05));
  CHECK(parts[0].cross_validated == Approx(0.2));
  const std::string text = accuracy_text({healthy, sick}, false);
  CHECK_THAT(text, contains("BEYOND") && contains("sick: the time falls with the size"));
}
