// scenarios/hangs: every one goes as it expects, and the verdict holds when ranks are renumbered or
// reports are missing.
#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>

#include <nlohmann/json.hpp>

#include "gradsync/simulator/simulation.hpp"
#include "gradsync/testbed/diagnosis/scenario_fix.hpp"
#include "gradsync/testbed/result/expectations.hpp"
#include "gradsync/testbed/result/run_result.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/paths.hpp"

namespace gradsync {
namespace {

namespace fs = std::filesystem;
using test::contains;

std::vector<std::string> scenarios(bool fixed) {
  std::vector<std::string> files;
  for (const auto& entry :
       fs::directory_iterator(fs::path(gradsync::test::source_dir()) / "scenarios/hangs")) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".json") && name.ends_with(".fixed.json") == fixed) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Of a scenario whose ranks may be renumbered: its reports say all that its verdict needs.
struct Run {
  Scenario scenario;
  RunOutcome outcome;
  std::optional<Diagnosis> diagnosis;
};

Run run(const std::string& file) {
  Run run;
  run.scenario = load_scenario(file);
  run.outcome = run_simulated(run.scenario);
  run.diagnosis = diagnose(run.outcome.reports, run.scenario);
  return run;
}

std::string without_times(const Diagnosis& diagnosis) {
  nlohmann::ordered_json json = to_json(diagnosis);
  for (auto& row : json["table"]) row.erase("since");
  return json.dump(2);
}

TEST_CASE("hang lab: every scenario goes as it expects, broken and fixed") {
  for (const bool fixed : {false, true}) {
    for (const std::string& file : scenarios(fixed)) {
      INFO(file);
      const Scenario scenario = load_scenario(file);
      const RunOutcome outcome = run_simulated(scenario);
      const RunResult result = make_result(scenario, outcome);
      for (const ExpectationResult& line :
           check_expectations(scenario, {result}, outcome.reports)) {
        INFO(line.what << ": expected " << line.expected << ", found " << line.found);
        CHECK(line.ok);
      }
    }
  }
}

TEST_CASE(
    "hang lab: there is a scenario for each entry of the catalog, with a fixed one beside it") {
  std::set<std::string> entries;
  for (const std::string& file : scenarios(false)) {
    const Scenario scenario = load_scenario(file);
    entries.insert(scenario.expect.diagnosis_catalog.value_or(""));
    CHECK(fs::exists(fs::path(file).replace_extension(".fixed.json")));
    CHECK_FALSE(scenario.description.empty());
  }
  for (int entry = 1; entry <= 26; ++entry) {
    const std::string code = (entry < 10 ? "K0" : "K") + std::to_string(entry);
    INFO(code);
    CHECK(entries.contains(code));
  }
}

TEST_CASE("hang lab: the same run gives the same bytes") {
  for (const char* name :
       {"k08-nan-skip", "k17-two-groups-opposite-order", "k14-slow-checkpoint"}) {
    const std::string file = gradsync::test::source_dir() + "/scenarios/hangs/" + name + ".json";
    CHECK(without_times(*run(file).diagnosis) == without_times(*run(file).diagnosis));
    CHECK(to_json(*run(file).diagnosis).at("fix") != "");
  }
}

TEST_CASE("hang lab: renumbered ranks give the same verdict, renumbered") {
  for (const std::string& file : scenarios(false)) {
    INFO(file);
    const Run original = run(file);
    REQUIRE(original.diagnosis.has_value());
    // Whether set_epoch was called follows from the samples that the sampler's seed gives to each
    // rank by its number.
    if (original.diagnosis->catalog == "K10") continue;
    const auto world = original.outcome.reports.size();
    std::vector<RankReport> reports = original.outcome.reports;
    std::vector<int> expected;
    for (RankReport& report : reports) {
      report.rank = static_cast<int>(world) - 1 - report.rank;
      for (int& other : report.unreachable) other = static_cast<int>(world) - 1 - other;
    }
    for (const int rank : original.diagnosis->ranks) {
      expected.push_back(static_cast<int>(world) - 1 - rank);
    }
    std::sort(expected.begin(), expected.end());
    const auto found = diagnose(reports, original.scenario);
    REQUIRE(found.has_value());
    CHECK(found->kind == original.diagnosis->kind);
    CHECK(found->verdict == original.diagnosis->verdict);
    CHECK(found->step == original.diagnosis->step);
    CHECK(found->ranks == expected);
  }
}

TEST_CASE(
    "hang lab: from half of the ranks' reports there is a verdict that says what is missing") {
  for (const std::string& file : scenarios(false)) {
    INFO(file);
    const Run original = run(file);
    std::vector<RankReport> half(
        original.outcome.reports.begin(),
        original.outcome.reports.begin() +
            static_cast<std::ptrdiff_t>((original.outcome.reports.size() + 1) / 2));
    const auto found = diagnose(half, original.scenario);
    REQUIRE(found.has_value());
    const std::string text = format_text(*found);
    CHECK_THAT(text, contains("no report") || contains("missing"));
  }
}

TEST_CASE("hang lab: the fix of a diagnosis, tried, lets the run complete") {
  for (const char* name :
       {"k01-uneven-shards", "k03-branch-on-one-rank", "k05-rank0-evaluates-through-ddp",
        "k07-early-stop-on-own-metric", "k08-nan-skip", "k12-static-graph-changes",
        "k14-slow-checkpoint", "k18-group-made-by-members-only", "k19-loader-never-returns",
        "k25-resume-on-one-rank"}) {
    INFO(name);
    const Run original = run(gradsync::test::source_dir() + "/scenarios/hangs/" + name + ".json");
    REQUIRE(original.diagnosis.has_value());
    const auto fix = fix_scenario(original.scenario, *original.diagnosis);
    REQUIRE(fix.has_value());
    INFO(fix->description);
    const RunResult result = make_result(fix->scenario, run_simulated(fix->scenario));
    CHECK(result.outcome == Outcome::kCompleted);
  }
}

}  // namespace
}  // namespace gradsync
