#pragma once

#include <filesystem>
#include <utility>
#include <vector>

#include "gradsync/testbed/result/run_directory.hpp"
#include "gradsync/testbed/result/run_result.hpp"
#include "tests/support/hand_made_reports.hpp"

/// Small runs of two ranks that finish, for tests of what is written of a run.
namespace gradsync::test {

inline Scenario two_ranks() {
  Scenario scenario;
  scenario.name = "two";
  scenario.ranks = 2;
  scenario.cluster.nodes = 1;
  return scenario;
}

inline RunOutcome outcome_of(std::vector<RankReport> reports) {
  RunOutcome outcome;
  outcome.reports = std::move(reports);
  outcome.wall = Seconds{1.5};
  return outcome;
}

inline RunOutcome two_ranks_of(int steps) {
  return outcome_of(
      {HandMadeRank(0, 2).steps(steps).finishes(), HandMadeRank(1, 2).steps(steps).finishes()});
}

inline void write_run(const std::filesystem::path& directory, const Scenario& scenario,
                      const RunOutcome& outcome) {
  write_run_directory(directory.string(), scenario, outcome, make_result(scenario, outcome));
}

}  // namespace gradsync::test
