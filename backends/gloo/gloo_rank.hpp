#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backends/store/rank_environment.hpp"
#include "engine/train/rank_main.hpp"
#include "engine/train/rank_report.hpp"
#include "engine/train/scenario.hpp"

namespace gradsync {

struct GlooRankOptions {
  /// Where this rank writes ranks/rank-N.json (see write_report_file); empty: nowhere.
  std::string run_directory;
  /// Bring the reports of all ranks to rank 0 through the store (under a foreign launcher).
  bool gather_reports = false;
  /// Passed on to run_rank (see RankWorld).
  std::function<void(const StepRecord&)> on_step;
  /// What the rank does with its process group; empty: run_rank, that is, it trains the scenario.
  std::function<void(const RankWorld&, RankReport&)> body;
};

struct GlooRankResult {
  RankReport report;
  /// Rank 0 with `gather_reports`: the reports of all ranks, by rank; else empty.
  std::vector<RankReport> all_reports;
  bool terminated = false;  ///< by SIGTERM
  /// Exit status of this rank's process: 0, exit_status(*report.error_code), or 143 after SIGTERM.
  int exit_status() const;
};

/// A whole rank on Gloo: store, rendezvous, process group, the body on the CPU, shutdown. An error
/// that ends the rank is in the report, not thrown; the report is written in every case.
///
/// On SIGTERM the rank tells the others and ends in its next collective; if it does not come to one
/// within a second, the process writes down what it knows and ends with status 143.
GlooRankResult run_gloo_rank(const Scenario& scenario, const RankEnvironment& environment,
                             const GlooRankOptions& options);

}  // namespace gradsync
