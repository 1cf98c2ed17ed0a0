// Axes, points and tables of a sweep; what a run comes to in a row of it.
#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/predict/bottleneck.hpp"
#include "gradsync/predict/sweep.hpp"
#include "tests/support/catch.hpp"

namespace gradsync {
namespace {

using test::Approx;
using test::contains;

/// Ranks that take 1 ms of forward, 2 of backward, `exposed` of waiting and 1 of optimizer a step.
RunOutcome outcome_of(int ranks, int steps, double first_exposed, double exposed) {
  RunOutcome outcome;
  for (int rank = 0; rank < ranks; ++rank) {
    RankReport report;
    report.rank = rank;
    report.world_size = ranks;
    report.state = RankState::kFinished;
    report.parameter_tensors = 1;
    report.buckets = {{0, 1000, 250, {}}, {1, 3000, 750, {}}};
    double now = 0;
    for (int step = 0; step < steps; ++step) {
      StepRecord record;
      record.step = step;
      const double waiting = step == 0 ? first_exposed : exposed;
      record.begin = record.data_end = Seconds(now);
      record.forward_end = Seconds(now + 1e-3);
      record.comm_begin = Seconds(now + 2e-3);
      record.backward_compute_end = Seconds(now + 3e-3);
      record.backward_end = record.comm_end = record.clip_end = Seconds(now + 3e-3 + waiting);
      record.optimizer_end = record.end = record.backward_end + Seconds(1e-3);
      now = record.end.count();
      report.steps.push_back(record);
    }
    report.steps_completed = report.steps_planned = steps;
    outcome.reports.push_back(report);
  }
  return outcome;
}

Sweep small_sweep() {
  Sweep sweep;
  sweep.scenario = "small & <quick>";
  sweep.axes = {{"ranks", {"2", "4"}}, {"ddp.bucket_cap_mb", {"1", "25"}}};
  for (const SweepPoint& point : sweep_points(sweep.axes)) {
    PointResult result;
    result.outcome = "completed";
    result.step_p50 = 0.1 * static_cast<double>(sweep.rows.size() + 1);
    result.exposed = 0.0123;
    result.bottleneck = "inter_node, 1 GB/s";
    sweep.rows.push_back({point.values, result, "key"});
  }
  return sweep;
}

}  // namespace

TEST_CASE("sweep axes: JSON pointers and dotted paths, values with commas inside brackets") {
  const SweepAxis pointer = parse_sweep_axis("/ddp/bucket_cap_mb=1,5,25");
  CHECK(pointer.path == "ddp.bucket_cap_mb");
  CHECK(pointer.values == std::vector<std::string>{"1", "5", "25"});
  CHECK(parse_sweep_axis("cluster.inter_node.bandwidth=10Gbps,100Gbps").values.size() == 2);
  const SweepAxis lists = parse_sweep_axis("cluster.fat_tree.down=[16,8],[32,4]");
  CHECK(lists.values == std::vector<std::string>{"[16,8]", "[32,4]"});
  CHECK(parse_sweep_axis("name=\"a,b\",c").values == std::vector<std::string>{"\"a,b\"", "c"});
  for (const char* wrong : {"ranks", "=1", "ranks=", "ranks=1,,2", "ranks=1,1", "/a.b=1", "/=1"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(parse_sweep_axis(wrong), Error);
  }
}

TEST_CASE("sweep points: every combination, the last axis fastest") {
  const auto points = sweep_points({{"ranks", {"2", "4"}}, {"seed", {"0", "1", "2"}}});
  REQUIRE(points.size() == 6);
  CHECK(points[0].values == std::vector<std::string>{"2", "0"});
  CHECK(points[1].values == std::vector<std::string>{"2", "1"});
  CHECK(points[5].values == std::vector<std::string>{"4", "2"});
  CHECK(points[5].overrides[0].path == "ranks");
  CHECK(points[5].overrides[1].value == "2");
  CHECK(sweep_points({}).size() == 1);
}

TEST_CASE("sweep keys tell texts apart wherever they differ") {
  CHECK(content_key({"a", "b"}) == content_key({"a", "b"}));
  CHECK(content_key({"a", "b"}) != content_key({"ab", ""}));
  CHECK(content_key({"a", "b"}) != content_key({"b", "a"}));
  CHECK(content_key({"a"}).size() == 32);
}

TEST_CASE("sweep tables: the same rows as text, CSV, Markdown and JSON") {
  const Sweep sweep = small_sweep();
  CHECK_THAT(sweep_text(sweep), contains("#  ranks  bucket_cap_mb  step_ms"));
  CHECK_THAT(sweep_text(sweep), contains("400.0"));
  CHECK_THAT(sweep_csv(sweep), contains("ranks,bucket_cap_mb,step_ms,p95_ms"));
  CHECK_THAT(sweep_csv(sweep), contains("\"inter_node, 1 GB/s\""));
  CHECK_THAT(sweep_markdown(sweep), contains("| 4 | 25 | 400.0 |"));
  const auto json = to_json(sweep);
  REQUIRE(json.at("rows").size() == 4);
  CHECK(json.at("rows")[3].at("values").at("ddp.bucket_cap_mb") == "25");
  CHECK(json.at("rows")[3].at("step_seconds").at("p50").get<double>() == Approx(0.4));
  const PointResult back = point_result_from_json(to_json(sweep.rows[3].result));
  CHECK(back.step_p50 == sweep.rows[3].result.step_p50);
  CHECK(back.bottleneck == sweep.rows[3].result.bottleneck);
}

TEST_CASE("sweep plot: a line for each combination, names escaped") {
  const std::string svg = sweep_svg(small_sweep());
  CHECK_THAT(svg, contains("<svg xmlns="));
  CHECK_THAT(svg, contains("small &amp; &lt;quick&gt;"));
  CHECK_THAT(svg, contains("bucket_cap_mb 25"));
  CHECK_THAT(svg, contains("stroke-dasharray"));
  std::size_t circles = 0;
  for (auto at = svg.find("<circle"); at != std::string::npos; at = svg.find("<circle", at + 1)) {
    ++circles;
  }
  CHECK(circles == 4);
  // Words in place of numbers, and nothing but zeros, must not divide by zero.
  Sweep words = small_sweep();
  words.axes[0].values = {"star", "fat_tree"};
  for (Sweep::Row& row : words.rows) {
    row.values[0] = row.values[0] == "2" ? "star" : "fat_tree";
    row.result = {};
  }
  CHECK(sweep_svg(words).find("nan") == std::string::npos);
}

TEST_CASE("point result: steady steps only, and their parts add up to the step") {
  Scenario scenario;
  scenario.backend = "sim";
  scenario.ranks = 2;
  const RunOutcome outcome = outcome_of(2, 4, 50e-3, 4e-3);
  const PointResult point = summarize(scenario, outcome, make_result(scenario, outcome));
  CHECK(point.outcome == "completed");
  CHECK(point.steps == 3);
  CHECK(point.step_p50 == Approx(8e-3));
  CHECK(point.exposed == Approx(4e-3));
  CHECK(point.communication == Approx(5e-3));
  CHECK(point.data + point.forward + point.backward + point.exposed + point.optimizer ==
        Approx(point.step_p50));
  CHECK(point.buckets == 2);
  CHECK(point.bucket_bytes == 4000);
  CHECK_THAT(point.bottleneck, contains("intra_node"));
  // One step is all there is: then it is the one that counts.
  const RunOutcome single = outcome_of(2, 1, 50e-3, 4e-3);
  CHECK(summarize(scenario, single, make_result(scenario, single)).exposed == Approx(50e-3));
}

TEST_CASE("bottleneck: the slower hop, and whether latency or bandwidth makes it so") {
  ClusterSpec cluster;
  cluster.gpus_per_node = 8;
  cluster.intra_node = {{300e9}, Seconds(1e-6)};
  cluster.inter_node = {{25e9}, Seconds(5e-6)};
  const Bytes bucket = 26214400;
  CHECK(find_bottleneck(cluster, 8, bucket).link == "intra_node");
  const Bottleneck few = find_bottleneck(cluster, 16, bucket);
  CHECK(few.link == "inter_node");
  CHECK(few.step.count() == Approx(12e-6 + 26214400 / 16.0 / 25e9));
  CHECK(few.latency_share < 0.5);
  const Bottleneck many = find_bottleneck(cluster, 1024, bucket);
  CHECK(many.latency_share > 0.9);
  CHECK_THAT(describe(many), contains("latency"));
  CHECK_THAT(describe(few), contains("bandwidth"));
  CHECK_THAT(describe(find_bottleneck(cluster, 1, bucket)), contains("one rank"));
}

}  // namespace gradsync
