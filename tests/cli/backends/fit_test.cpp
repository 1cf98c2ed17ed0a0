// `gradsync fit`, `calibrate` and `validate`.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "gradsync/core/units.hpp"
#include "gradsync/predict/accuracy.hpp"
#include "gradsync/testbed/record/files.hpp"
#include "tests/cli/command.hpp"
#include "tests/cli/scenarios.hpp"
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

TEST_CASE("calibrate measures Gloo and compute here, and writes a cluster that runs in sim") {
  const TemporaryDirectory directory;
  const std::string cluster = directory.path() / "cluster.json";
  const CommandResult calibrate =
      run_command({"calibrate", "--ranks", "2", "-b", "64K", "-e", "16M", "-f", "16", "-n", "5",
                   "-w", "1", "--out", cluster});
  INFO(calibrate.err);
  REQUIRE(calibrate.exit_status == 0);
  const auto description = nlohmann::ordered_json::parse(read_file(cluster));
  CHECK(description.at("library") == "gloo");
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
  bool all_within = true;
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
    CHECK(within ==
          file.beyond_budget.empty());  // a reason is not kept for longer than it is needed
    all_within = all_within && within;
  }
  CHECK(validate.exit_status == (all_within ? 0 : 1));
}
