#include <filesystem>
#include <fstream>
#include <set>

#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/testbed/record/files.hpp"
#include "gradsync/testbed/result/compare.hpp"
#include "gradsync/testbed/result/foreign_file.hpp"
#include "gradsync/testbed/result/run_directory.hpp"
#include "gradsync/testbed/result/run_records.hpp"
#include "gradsync/testbed/result/trace.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/hand_made_reports.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/two_rank_runs.hpp"

namespace gradsync {
namespace {

namespace fs = std::filesystem;
using test::contains;
using test::HandMadeRank;
using test::outcome_of;
using test::two_ranks;
using test::two_ranks_of;
using test::write_run;
using Json = nlohmann::ordered_json;

Json read_json(const fs::path& file) {
  return Json::parse(read_file(file));
}

std::vector<Json> read_lines(const fs::path& file) {
  std::ifstream stream(file);
  std::vector<Json> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
  return lines;
}

TEST_CASE("run directory: has every file, each readable by itself") {
  const test::TemporaryDirectory temporary;
  const fs::path directory = temporary.path() / "new" / "run";
  write_run(directory, two_ranks(), two_ranks_of(3));

  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) names.insert(fs::relative(entry.path(), directory).string());
  }
  CHECK(names == std::set<std::string>{"scenario.json", "result.json", "ranks.jsonl", "steps.jsonl",
                                       "events.jsonl", "trace.json", "flight/rank-0.json",
                                       "flight/rank-1.json"});
  CHECK(read_json(directory / "scenario.json")["name"] == "two");
  CHECK(read_json(directory / "result.json")["outcome"] == "completed");
  CHECK(read_lines(directory / "ranks.jsonl").size() == 2);
  const auto steps = read_lines(directory / "steps.jsonl");
  REQUIRE(steps.size() == 6);
  CHECK(steps[4]["rank"] == 1);
  CHECK(steps[4]["step"] == 1);
  CHECK(steps[4]["loss"] == 7.0);
  const auto events = read_lines(directory / "events.jsonl");
  REQUIRE(events.size() == 1 + 2 * 6);
  CHECK(events[0]["parameter_lists"] == Json::parse(R"([["b","c"],["a"]])"));
  CHECK(events[1]["op"] == "allreduce");
  CHECK(events[1]["bucket"] == 0);
  CHECK(events[1]["parameters"] == 0);
  CHECK(read_flight_files({(directory / "flight" / "rank-1.json").string()})
            .reports.front()
            .flight.size() == 6);
}

TEST_CASE("run directory: replaces an earlier run, refuses anything else") {
  const test::TemporaryDirectory temporary;
  const fs::path directory = temporary.path() / "run";
  RunOutcome four = outcome_of({});
  for (int rank = 0; rank < 4; ++rank) {
    four.reports.push_back(HandMadeRank(rank, 4).steps(1).finishes());
  }
  Scenario scenario = two_ranks();
  scenario.ranks = 4;
  write_run(directory, scenario, four);
  CHECK(fs::exists(directory / "flight" / "rank-3.json"));
  write_run(directory, two_ranks(), two_ranks_of(1));
  CHECK_FALSE(fs::exists(directory / "flight" / "rank-3.json"));

  fs::create_directories(directory / "ranks");
  std::ofstream(directory / "ranks" / "rank-0.json") << "{}";
  write_run(directory, two_ranks(), two_ranks_of(1));
  CHECK(fs::exists(directory / "ranks" / "rank-0.json"));  // of this run's own ranks
  prepare_run_directory(directory.string());
  CHECK_FALSE(fs::exists(directory / "ranks"));
  CHECK_FALSE(fs::exists(directory / "result.json"));

  const fs::path mine = temporary.path() / "mine";
  fs::create_directories(mine);
  std::ofstream(mine / "thesis.tex") << "precious";
  std::ofstream(mine / "result.json") << "{}";
  CHECK_THROWS_WITH(prepare_run_directory(mine.string()), contains("holds thesis.tex"));
  CHECK_THROWS_WITH(write_run(mine, two_ranks(), two_ranks_of(1)), contains("holds thesis.tex"));
  CHECK(read_file(mine / "thesis.tex") == "precious");
  CHECK(read_file(mine / "result.json") == "{}");
  CHECK_THROWS_WITH(prepare_run_directory((mine / "thesis.tex").string()),
                    contains("is not a directory"));
  CHECK_THROWS_AS(prepare_run_directory((mine / "thesis.tex" / "run").string()), Error);
}

TEST_CASE("run directory: reports read back give the same diagnosis") {
  const test::TemporaryDirectory temporary;
  Scenario scenario = test::uneven_scenario();
  for (std::int64_t detail : {64, 1, 0}) {
    for (const auto& reports : {test::uneven_reports_simulated(), test::uneven_reports_real()}) {
      scenario.output.detail_ranks = detail;
      write_run(temporary.path() / "run", scenario, outcome_of(reports));
      const auto read = read_run_records((temporary.path() / "run").string()).reports;
      REQUIRE(read.size() == 4);
      auto again = to_json(*diagnose(read, scenario));
      auto first = to_json(*diagnose(reports, scenario));
      // Without the steps of all ranks less can be ruled out, and of what went before the ranks
      // parted only the last collective is known.
      if (detail < 4) {
        CHECK(again["ruled_out"].size() + 1 == first["ruled_out"].size());
        CHECK(again["divergence"]["last_agreed"] == first["divergence"]["last_agreed"]);
        CHECK(again["divergence"]["rows"].back() == first["divergence"]["rows"].back());
        for (const char* key : {"ruled_out", "divergence"}) {
          again.erase(key);
          first.erase(key);
        }
      }
      CHECK(again.dump(1) == first.dump(1));
    }
  }
  // Parameters that differ are found in steps.jsonl.
  scenario = two_ranks();
  const RunOutcome parted = outcome_of(
      {HandMadeRank(0, 2).steps(1).finishes(), HandMadeRank(1, 2).step(0, "other").finishes()});
  write_run(temporary.path() / "run", scenario, parted);
  CHECK(diagnose(read_run_records((temporary.path() / "run").string()).reports, scenario)->kind ==
        DiagnosisKind::kParametersDiffer);
}

TEST_CASE("run directory: what is missing or damaged is said, and the rest is read") {
  const test::TemporaryDirectory temporary;
  const std::string directory = (temporary.path() / "run").string();
  CHECK_THROWS_WITH(read_run_records(directory), contains("ranks.jsonl"));
  write_run(directory, two_ranks(), two_ranks_of(1));
  CHECK_FALSE(read_run_records(directory).gaps.any());
  const auto only_gap = [&] {
    const RunRecords records = read_run_records(directory);
    CHECK(records.reports.size() == 2);
    REQUIRE(records.gaps.files.size() == 1);
    return records.gaps.files.front();
  };
  const auto cut = [&](const char* name, std::size_t bytes) {
    const fs::path file = fs::path(directory) / name;
    const std::string whole = read_file(file);
    write_file(file, whole.substr(0, whole.size() - bytes));
  };
  SECTION("a summary that is cut off: the rank's flight file is there") {
    cut("ranks.jsonl", 20);
    CHECK_THAT(only_gap(), contains("ranks.jsonl:2"));
  }
  SECTION("no summaries") {
    fs::remove(fs::path(directory) / "ranks.jsonl");
    CHECK_THAT(only_gap(), contains("ranks.jsonl is missing"));
  }
  SECTION("a flight file that is cut off: the rank's summary is there") {
    cut("flight/rank-1.json", 20);
    CHECK_THAT(only_gap(), contains("flight/rank-1.json is damaged"));
    CHECK(read_run_records(directory).gaps.summaries == std::vector<int>{1});
  }
  SECTION("no steps: parameters cannot be compared") {
    fs::remove(fs::path(directory) / "steps.jsonl");
    CHECK_THAT(only_gap(), contains("steps.jsonl is missing"));
    CHECK(read_run_records(directory).gaps.steps);
    const RunRecords records = read_run_records(directory);
    const auto found = diagnose(records.reports, records.scenario, records.gaps);
    REQUIRE(found.has_value());
    CHECK(found->verdict == "clean");
    CHECK(found->confidence == "open");
    CHECK_THAT(found->because, contains("parameters, losses and learning rates were not compared"));
  }
  SECTION("no scenario") {
    fs::remove(fs::path(directory) / "scenario.json");
    CHECK_THAT(only_gap(), contains("scenario.json is missing"));
    CHECK(read_run_records(directory).scenario.ranks == 2);
  }
  CHECK_THROWS_WITH(read_flight_files({directory + "/flight/rank-7.json"}),
                    contains("rank-7.json"));
}

TEST_CASE("run directory: files of other tools are named for what they are") {
  CHECK(describe_foreign_file(R"({"version": "2.9", "pg_config": {}, "entries": []})") ==
        "a Flight Recorder dump of PyTorch (version 2.9)");
  CHECK(describe_foreign_file(R"({"pg_status": {}, "entries": []})") ==
        "a Flight Recorder dump of PyTorch");
  CHECK(describe_foreign_file(R"({"traceEvents": [], "distributedInfo": {"rank": 0}})") ==
        "a trace of PyTorch's profiler");
  CHECK(describe_foreign_file(R"({"traceEvents": []})") == "a trace in Chrome's format");
  CHECK(describe_foreign_file("\x80\x04\x95 entries pg_config") ==
        "a Flight Recorder dump of PyTorch (a Python pickle)");
  CHECK(describe_foreign_file("\x80\x02 q") == "a Python pickle");
  CHECK(describe_foreign_file("[rank0]: Watchdog caught collective operation timeout: WorkNCCL") ==
        "a log of PyTorch's NCCL watchdog");
  CHECK_FALSE(describe_foreign_file(R"({"report_version": 3, "rank": 0})").has_value());
  CHECK_FALSE(describe_foreign_file("").has_value());
  CHECK_FALSE(describe_foreign_file(R"({"report_version": 3, "ra)").has_value());

  const test::TemporaryDirectory temporary;
  write_file(temporary.path() / "dump.json",
             R"({"version": "2.9", "pg_config": {}, "entries": []})");
  CHECK_THROWS_WITH(read_flight_files({(temporary.path() / "dump.json").string()}),
                    contains("dump.json is a Flight Recorder dump of PyTorch (version 2.9)"));
  CHECK_THROWS_WITH(read_run_records(temporary.path().string()),
                    contains("dump.json is a Flight Recorder dump of PyTorch (version 2.9)"));
}

TEST_CASE("run directory: details are written for the first ranks, summaries for all") {
  const test::TemporaryDirectory temporary;
  Scenario scenario = two_ranks();
  scenario.output.detail_ranks = 1;
  write_run(temporary.path() / "run", scenario, two_ranks_of(2));
  CHECK(read_lines(temporary.path() / "run" / "ranks.jsonl").size() == 2);
  CHECK(read_lines(temporary.path() / "run" / "steps.jsonl").size() == 2);
  CHECK_FALSE(fs::exists(temporary.path() / "run" / "flight" / "rank-1.json"));
  const Json trace = read_json(temporary.path() / "run" / "trace.json");
  for (const Json& event : trace["traceEvents"]) CHECK(event["pid"] == 0);
}

TEST_CASE("run directory: 1,024 ranks of a few steps are quick to write") {
  // No clock in the check: the size of what is written is what the time follows from.
  const test::TemporaryDirectory temporary;
  Scenario scenario = two_ranks();
  scenario.ranks = 1024;
  RunOutcome outcome = outcome_of({});
  for (int rank = 0; rank < 1024; ++rank) {
    outcome.reports.push_back(HandMadeRank(rank, 1024).steps(3).finishes());
  }
  write_run(temporary.path() / "run", scenario, outcome);
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(temporary.path() / "run")) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  CHECK(bytes < 8'000'000);
}

}  // namespace
}  // namespace gradsync
