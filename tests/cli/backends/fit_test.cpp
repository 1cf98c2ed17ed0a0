// `gradsync fit`, `calibrate` and `validate`.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "gradsync/core/units.hpp"
#include "gradsync/predict/accuracy.hpp"
#include "gradsync/predict/outliers.hpp"
#include "gradsync/testbed/record/files.hpp"
#include "tests/cli/command.hpp"
#include "tests/cli/scenarios.hpp"
#include "tests/support/bench_logs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace gradsync::test;
using gradsync::read_file;
namespace fs = std::filesystem;

namespace {

/// The times that a simulated cluster has, as a log.
std::string simulated_log(const fs::path& directory, const std::string& bandwidth,
                          const std::string& latency) {
  const CommandResult bench =
      run_command({"bench", "allreduce", "--backend", "sim", "--ranks", "4", "-b", "64K", "-e",
                   "16M", "-f", "4", "--set", "cluster.intra_node.bandwidth=" + bandwidth, "--set",
                   "cluster.intra_node.latency=" + latency, "--json"});
  REQUIRE(bench.exit_status == 0);
  const fs::path file = directory / "log.json";
  std::ofstream(file) << bench.out;
  return file;
}

}  // namespace

TEST_CASE("fit finds the links that a log was made with, and a scenario can name the result") {
  const TemporaryDirectory directory;
  const std::string log = simulated_log(directory.path(), "2GBps", "10us");
  const std::string cluster = directory.path() / "cluster.json";
  const CommandResult fit = run_command({"fit", log, "--predict", "1M,1G", "--out", cluster});
  INFO(fit.err);
  REQUIRE(fit.exit_status == 0);
  CHECK_THAT(fit.out, contains("residuals"));
  CHECK_THAT(fit.out, contains("EXTRAPOLATED"));
  CHECK_THAT(fit.err, contains("warning"));  // 1G was not measured
  const auto link = nlohmann::ordered_json::parse(read_file(cluster)).at("intra_node");
  CHECK(gradsync::parse_bandwidth(link.at("bandwidth").get<std::string>()).value ==
        Approx(2e9).epsilon(0.001));
  CHECK(gradsync::parse_duration(link.at("latency").get<std::string>()).count() ==
        Approx(10e-6).epsilon(0.01));

  const CommandResult again = run_command({"bench", "allreduce", "--backend", "sim", "--ranks", "4",
                                           "-b", "1M", "-e", "1M", "--cluster", cluster, "--json"});
  REQUIRE(again.exit_status == 0);
  CHECK(again.json().at("results")[0].at("in_place").at("time").get<double>() ==
        Approx(6 * (20 + 1048576 / 4 / 2e3)).epsilon(0.001));
}

TEST_CASE("fit --cluster fits two numbers through the simulation itself") {
  const TemporaryDirectory directory;
  const std::string log = simulated_log(directory.path(), "3GBps", "40us");
  const std::string base = directory.path() / "base.json";
  std::ofstream(base) << R"({"intra_node": {"bandwidth": "1GBps", "latency": "5us"}})";
  const std::string cluster = directory.path() / "cluster.json";
  const CommandResult fit =
      run_command({"fit", log, "--cluster", base, "--vary",
                   "intra_node.latency,intra_node.bandwidth", "--out", cluster});
  INFO(fit.err);
  REQUIRE(fit.exit_status == 0);
  const auto link = nlohmann::ordered_json::parse(read_file(cluster)).at("intra_node");
  CHECK(gradsync::parse_bandwidth(link.at("bandwidth").get<std::string>()).value ==
        Approx(3e9).epsilon(0.02));
  CHECK(gradsync::parse_duration(link.at("latency").get<std::string>()).count() ==
        Approx(40e-6).epsilon(0.02));
  CHECK(run_command({"fit", log, "--cluster", base, "--vary", "intra_node.colour"}).exit_status ==
        2);
  CHECK(run_command({"fit", directory.path() / "none.txt"}).exit_status == 2);
}

TEST_CASE("fit takes nodes from the log, and its description predicts the log it was made from") {
  const TemporaryDirectory directory;
  const std::string log = directory.path() / "log.txt";
  const std::string cluster = directory.path() / "cluster.json";
  for (const auto& [nodes, each] : {std::pair{2, 1}, {2, 8}, {8, 8}, {1, 8}}) {
    CAPTURE(nodes, each);
    MadeLog made;
    made.nodes = nodes;
    made.ranks_per_node = each;
    std::ofstream(log) << made_text(made);
    const CommandResult fit = run_command({"fit", log, "--out", cluster});
    CAPTURE(fit.out, fit.err);
    REQUIRE(fit.exit_status == 0);
    const auto description = nlohmann::ordered_json::parse(read_file(cluster));
    CHECK(description.at("gpus_per_node") == each);
    CHECK(description.contains("inter_node") == (nodes > 1));
    const auto link = description.at(nodes > 1 ? "inter_node" : "intra_node");
    const double n = made.ranks();
    CHECK(gradsync::parse_bandwidth(link.at("bandwidth").get<std::string>()).value ==
          Approx(3e9 * 2 * (n - 1) / n).epsilon(0.01));
    const CommandResult again = run_command(
        {"bench", "allreduce", "--backend", "sim", "--ranks", std::to_string(made.ranks()), "-b",
         "4M", "-e", "4M", "--cluster", cluster, "--json", "--set", "simulation.fidelity=flow"});
    REQUIRE(again.exit_status == 0);
    CHECK(again.json().at("results")[0].at("in_place").at("time").get<double>() ==
          Approx(made_time_us(made, 4 << 20)).epsilon(0.03));
  }
}

TEST_CASE("fit refuses other collectives, and says loudly where a ring misses its log") {
  const TemporaryDirectory directory;
  const std::string log = directory.path() / "log.txt";
  MadeLog made;
  made.root = 0;
  made.bus_factor = 1;
  std::ofstream(log) << made_text(made);
  const CommandResult reduce = run_command({"fit", log});
  CHECK(reduce.exit_status == 2);
  CHECK_THAT(reduce.err, contains("a table of reduce (root 0, not -1"));

  // A step of ten times at 4 MiB: no line goes through that.
  std::string text;
  MadeLog fast, slow;
  fast.sizes = {65536, 131072, 262144, 524288, 1048576, 2097152};
  slow.sizes = {4194304, 8388608, 16777216, 33554432, 67108864};
  fast.gigabytes_per_second = 50;
  slow.latency_us = 40000;
  std::ofstream(log) << made_text(fast) + made_text(slow);
  const CommandResult missed = run_command({"fit", log});
  CAPTURE(missed.out, missed.err);
  CHECK(missed.exit_status == 1);
  CHECK_THAT(missed.err, contains("WARNING: the description misses the log"));
  CHECK_THAT(missed.out, contains("geometric mean error"));
}

TEST_CASE("fit --cluster leaves alone what the log does not determine, and what is impossible") {
  const TemporaryDirectory directory;
  const std::string log = directory.path() / "log.txt";
  const std::string base = shipped("clusters/dgx-a100.json");
  // Large sizes alone know nothing of latencies, faster than NVLink can be.
  MadeLog made;
  made.sizes = {1LL << 30, 1LL << 31, 1LL << 32};
  made.latency_us = 0;
  made.gigabytes_per_second = 9000;
  std::ofstream(log) << made_text(made);
  const std::string cluster = directory.path() / "cluster.json";
  const CommandResult fit =
      run_command({"fit", log, "--cluster", base, "--vary",
                   "intra_node.bandwidth,software.hop_latency_scale", "--out", cluster});
  CAPTURE(fit.out, fit.err);
  CHECK(fit.exit_status == 1);  // it cannot be reached
  CHECK_THAT(fit.out, contains("does not determine it"));
  const auto description = nlohmann::ordered_json::parse(read_file(cluster));
  CHECK(gradsync::parse_bandwidth(description.at("intra_node").at("bandwidth").get<std::string>())
            .value <= 2.01e12);
  CHECK(description.at("software").at("hop_latency_scale").get<double>() >= 0.25);
  CHECK(run_command({"fit", log, "--algo", "ring"}).exit_status == 2);
}

TEST_CASE("fit --against finds a machine that uses two of its eight adapters") {
  const TemporaryDirectory directory;
  const auto log_of = [&](const std::string& name, const std::vector<std::string>& changes) {
    std::vector<std::string> arguments = {"bench",
                                          "allreduce",
                                          "--backend",
                                          "sim",
                                          "--ranks",
                                          "16",
                                          "-b",
                                          "1K",
                                          "-e",
                                          "1G",
                                          "-f",
                                          "4",
                                          "-c",
                                          "0",
                                          "--json",
                                          "--cluster",
                                          shipped("clusters/dgx-h100.json"),
                                          "--set",
                                          "simulation.fidelity=flow"};
    for (const std::string& change : changes) {
      arguments.push_back("--set");
      arguments.push_back(change);
    }
    const CommandResult bench = run_command(arguments);
    REQUIRE(bench.exit_status == 0);
    const std::string file = directory.path() / name;
    std::ofstream(file) << bench.out;
    return file;
  };
  const auto against = [&](const std::string& log) {
    return run_command({"fit", log, "--against", shipped("clusters/dgx-h100.json")});
  };
  const CommandResult healthy = against(log_of("healthy.json", {}));
  CAPTURE(healthy.out, healthy.err);
  CHECK(healthy.exit_status == 0);
  CHECK_THAT(healthy.out, contains("as fast as"));
  const CommandResult sick = against(log_of("sick.json", {"cluster.nics_per_node=2"}));
  CAPTURE(sick.out, sick.err);
  CHECK(sick.exit_status == 1);
  CHECK_THAT(sick.out, contains("times slower than") && contains("adapters in use: 2 of 8"));
}

TEST_CASE("fit --against finds every published table that is an outlier by the rule") {
  for (const auto& entry : fs::directory_iterator(shipped("validation"))) {
    const auto table = gradsync::load_accuracy_table(entry.path());
    if (table.is_training) continue;
    std::vector<gradsync::MeasuredTime> rows;
    for (const auto& row : table.rows) {
      rows.push_back({static_cast<int>(row.ranks), row.bytes, row.measured});
    }
    if (gradsync::outlier_signs(rows, {}).empty()) continue;
    const CommandResult check =
        run_command({"fit", entry.path(), "--against", shipped("clusters/dgx-h100.json")});
    CAPTURE(entry.path().string(), check.out, check.err);
    CHECK(check.exit_status == 1);
    CHECK_THAT(check.out, contains("a sick machine or a disturbed run"));
  }
}

TEST_CASE("calibrate measures Gloo and compute here, and writes a cluster that runs in sim") {
  const TemporaryDirectory directory;
  const std::string cluster = directory.path() / "cluster.json";
  const CommandResult calibrate =
      run_command({"calibrate", "--ranks", "2", "-b", "64K", "-e", "16M", "-f", "16", "-n", "5",
                   "-w", "1", "--out", cluster});
  INFO(calibrate.err);
  // A machine that runs other tests beside this one may well be called noisy.
  REQUIRE((calibrate.exit_status == 0 || calibrate.err.find("WARNING") != std::string::npos));
  const auto description = nlohmann::ordered_json::parse(read_file(cluster));
  CHECK(description.at("library") == "gloo");
  CHECK_THAT(description.at("//").dump(), contains("(95%)"));
  CHECK(gradsync::parse_compute_rate(description.at("compute_rate").get<std::string>()).value > 0);
  CHECK(run_command({"bench", "allreduce", "--backend", "sim", "--ranks", "2", "-b", "1M", "-e",
                     "1M", "--cluster", cluster})
            .exit_status == 0);
  CHECK(run_command({"calibrate", "--backend", "sim"}).exit_status == 2);
}

TEST_CASE("validate: every published table keeps its budget, or says why it does not") {
  const CommandResult validate =
      run_command({"validate", shipped("validation"), "--format", "json"});
  INFO(validate.err);
  const auto tables = validate.json().at("tables");
  CHECK(tables.size() >= 11);
  for (const auto& table : tables) {
    CAPTURE(table.at("name").get<std::string>());
    const auto file = gradsync::load_accuracy_table(table.at("file").get<std::string>());
    CHECK(file.source.size() > 20);
    CHECK(file.fitted.size() <= 2);
    bool within = true;
    for (const auto& group : table.at("groups")) {
      CAPTURE(group.dump());
      within = within && group.at("within").get<bool>();
    }
    // Each table beyond its budget has a reason, and a reason is not kept for longer than needed.
    CHECK(within == file.beyond_budget.empty());
  }
  CHECK(validate.exit_status == 0);
}
