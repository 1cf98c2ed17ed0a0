// The trace of a run, and the comparison of two runs.
#include <algorithm>
#include <map>
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

using test::contains;
using test::two_ranks;
using test::two_ranks_of;
using test::write_run;
using Json = nlohmann::ordered_json;

/// Slices by process and thread, as [begin, end) in nanoseconds.
std::map<std::pair<int, int>, std::vector<std::pair<std::int64_t, std::int64_t>>> slices_of(
    const Json& trace) {
  std::map<std::pair<int, int>, std::vector<std::pair<std::int64_t, std::int64_t>>> slices;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const auto begin = std::llround(event["ts"].get<double>() * 1000);
    const auto duration = std::llround(event["dur"].get<double>() * 1000);
    slices[{event["pid"].get<int>(), event["tid"].get<int>()}].push_back({begin, begin + duration});
  }
  return slices;
}

TEST_CASE("trace: slices of a thread nest, threads are named, arrows have two ends") {
  std::vector<RankReport> reports = test::uneven_reports_real();
  // Two buckets in flight at once, and times that are no whole nanoseconds.
  for (RankReport& report : reports) {
    for (auto* records : {&report.flight, &report.collectives}) {
      for (CollectiveRecord& record : *records) {
        record.started *= 1.0 / 3;
        record.completed *= 1.0 / 2;
      }
    }
    for (StepRecord& step : report.steps) {
      for (Seconds* time :
           {&step.begin, &step.data_end, &step.forward_end, &step.backward_compute_end,
            &step.backward_end, &step.clip_end, &step.optimizer_end, &step.end}) {
        *time *= 1.0 / 3;
      }
    }
  }
  const Json trace = Json::parse(chrome_trace(test::uneven_scenario(), reports));
  CHECK(trace["otherData"]["world_size"] == 4);
  for (const auto& [thread, slices] : slices_of(trace)) {
    for (const auto& a : slices) {
      for (const auto& b : slices) {
        const bool apart = a.second <= b.first || b.second <= a.first;
        const bool a_in_b = b.first <= a.first && a.second <= b.second;
        const bool b_in_a = a.first <= b.first && b.second <= a.second;
        CHECK((apart || a_in_b || b_in_a));
      }
    }
  }
  std::set<int> named_processes;
  std::set<std::pair<int, int>> named_threads;
  std::map<std::string, std::map<int, int>> arrows;
  for (const Json& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") named_processes.insert(event["pid"].get<int>());
    if (event["name"] == "thread_name")
      named_threads.emplace(event["pid"].get<int>(), event["tid"].get<int>());
    if (event["ph"] == "s" || event["ph"] == "f") {
      ++arrows[event["ph"].get<std::string>()][event["id"].get<int>()];
    }
    if (event["ph"] == "f") CHECK(event["bp"] == "e");
  }
  CHECK(named_processes == std::set<int>{0, 1, 2, 3});
  for (const auto& [thread, slices] : slices_of(trace)) CHECK(named_threads.contains(thread));
  CHECK(arrows["s"] == arrows["f"]);
  for (const auto& [id, count] : arrows["s"]) CHECK(count == 1);

  // What never ended is drawn to the end of the rank.
  bool unfinished = false;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X" && event["pid"] == 0 && event["args"].contains("ended")) {
      unfinished = true;
      CHECK(event["args"]["ended"] == false);
    }
  }
  CHECK(unfinished);
}

TEST_CASE("trace: of a long run the last steps are kept") {
  const RunOutcome outcome = two_ranks_of(20000);
  const std::string text = chrome_trace(two_ranks(), outcome.reports);
  CHECK_THAT(text.substr(0, 300), !contains("\"first_step\":0}") && contains("\"first_step\":"));
  CHECK(text.find("\"name\":\"step 19999\"") != std::string::npos);
  CHECK(text.find("\"name\":\"step 0\"") == std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') < 310'000);  // an event a line
}

TEST_CASE("compare: a run equals itself, in words with counts") {
  const test::TemporaryDirectory temporary;
  write_run(temporary.path() / "a", two_ranks(), two_ranks_of(3));
  Scenario scenario = two_ranks();
  scenario.backend = "sim";
  RunOutcome later = two_ranks_of(3);
  for (RankReport& report : later.reports) {
    for (CollectiveRecord& record : report.flight)
      record.issued += Seconds{5};  // times do not count
  }
  write_run(temporary.path() / "b", scenario, later);
  const auto compared =
      compare_runs((temporary.path() / "a").string(), (temporary.path() / "b").string());
  CHECK(compared.equal);
  CHECK(compared.summary ==
        "equal: same parameter hash after each of 3 steps and same collectives (12 in all) on 2 "
        "ranks");
  CHECK(compared.notes == std::vector<std::string>{"the first run is on gloo, the second on sim"});
}

TEST_CASE("compare: the first difference is told, whatever comes after it") {
  const test::TemporaryDirectory temporary;
  const std::string a = (temporary.path() / "a").string();
  const std::string b = (temporary.path() / "b").string();
  write_run(a, two_ranks(), two_ranks_of(3));
  RunOutcome other = two_ranks_of(3);
  const auto summary = [&] {
    write_run(b, two_ranks(), other);
    const Comparison compared = compare_runs(a, b);
    CHECK_FALSE(compared.equal);
    return compared.summary;
  };
  const auto set = [&](std::size_t rank, std::size_t index, auto change) {
    change(other.reports[rank].flight[index]);
  };

  other.reports[1].steps[2].parameter_hash = "ff";
  CHECK(
      summary() ==
      "first difference: rank 1, step 2: parameter hash hash-2 in the first run, ff in the second; "
      "the collectives up to there are the same");
  set(0, 5, [](CollectiveRecord& record) { record.elements = 3; });
  CHECK_THAT(summary(), contains("rank 0, collective 5: allreduce (sum) of 2 float32 elements"));
  set(1, 2, [](CollectiveRecord& record) { record.label.bucket = 1; });
  CHECK_THAT(summary(), contains("rank 1, collective 2:") && contains("bucket 1 (gradients) in the "
                                                                      "second"));
  set(1, 1, [](CollectiveRecord& record) {
    record.parameters =
        std::make_shared<const std::vector<std::string>>(std::vector<std::string>{"z"});
  });
  CHECK_THAT(summary(),
             contains("rank 1, collective 1:") &&
                 contains("holds 1 parameters from a to a in the first run, 1 parameters "
                          "from z to z in the second"));
  set(0, 0, [](CollectiveRecord& record) { record.dtype = DType::kFloat64; });
  CHECK_THAT(summary(), contains("rank 0, collective 0:"));

  other = two_ranks_of(2);
  CHECK_THAT(summary(), contains("rank 0, collective 4:") && contains("in the first run only"));

  Scenario three = two_ranks();
  three.ranks = 3;
  write_run(b, three, other);
  CHECK(compare_runs(a, b).summary == "2 ranks in the first run, 3 in the second");
  CHECK_THROWS_WITH(compare_runs(a, (temporary.path() / "none").string()),
                    contains("no result.json"));
}

}  // namespace
}  // namespace gradsync
