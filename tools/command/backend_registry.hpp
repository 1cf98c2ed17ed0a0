#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/backends/store/rank_environment.hpp"
#include "gradsync/testbed/rank/rank_main.hpp"
#include "gradsync/testbed/record/rank_report.hpp"
#include "gradsync/testbed/result/run_result.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// What a rank does with its process group where it does not train a scenario (a benchmark). It
/// sets the report's state to kFinished and shuts the group down, as run_rank does.
using RankBody = std::function<void(const RankWorld&, RankReport&)>;

/// One rank of a real backend in a process of its own.
struct RankRequest {
  RankEnvironment environment;
  /// Where the rank leaves ranks/rank-N.json for the parent that started it; empty: nowhere.
  std::string directory;
  /// Bring the reports of all ranks to rank 0: nobody else collects them.
  bool gather_reports = false;
  std::function<void(const StepRecord&)> on_step;
  RankBody body;  ///< empty: run_rank
};
struct RankResult {
  RankReport report;
  std::vector<RankReport> all_reports;  ///< rank 0 with `gather_reports`; else empty
  int exit_status = 0;
};

/// All ranks of a simulated backend in this process.
struct SimulationRequest {
  std::function<void(const StepRecord&)> on_step;  ///< watches rank 0; may be empty
  RankBody body;                                   ///< empty: run_rank
};

/// One world in which a scenario can run. This is all that the command knows of it.
struct Backend {
  std::string name;     ///< as in the scenario
  std::string summary;  ///< one line for `gradsync backends`
  std::string why_not;  ///< why this build does not have it; empty where it does

  /// Real backends: runs one rank, in this process. Null where all ranks share a process.
  RankResult (*run_rank)(const Scenario& scenario, const RankRequest& request) = nullptr;
  /// Simulated ones: runs all ranks, in this process.
  RunOutcome (*run_all)(const Scenario& scenario, const SimulationRequest& request) = nullptr;

  /// What this machine lacks for a backend that is built in, as a sentence; empty: nothing. Null:
  /// nothing can be lacking. Only asked of a backend that is wanted or listed: looking for GPUs
  /// takes a moment.
  std::string (*what_is_missing_here)() = nullptr;

  bool available() const noexcept { return why_not.empty(); }
  /// Why it cannot be used here and now; empty where it can.
  std::string why_not_here() const {
    return available() && what_is_missing_here != nullptr ? what_is_missing_here() : why_not;
  }
};

/// Every backend that gradsync knows of, built in or not. A backend is added to the list in
/// backend_registry.cpp and nowhere else.
const std::vector<Backend>& backends();

/// Throws Error(kBackendUnavailable) for a name that is not in the list.
const Backend& find_backend(const std::string& name);
/// The same for a backend that this build or this machine does not have: the error says why.
const Backend& require_backend(const std::string& name);

}  // namespace gradsync
