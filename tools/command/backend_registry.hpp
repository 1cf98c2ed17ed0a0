#pragma once

#include <string>
#include <vector>

#include "gradsync/backends/rank/rank_process.hpp"
#include "gradsync/testbed/rank/rank_body.hpp"
#include "gradsync/testbed/result/run_result.hpp"
#include "gradsync/testbed/scenario/backend_descriptor.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// A backend of the command, real or simulated.
struct Backend {
  BackendDescriptor descriptor;
  std::string why_not;  ///< why this build does not have it; empty if it does

  /// Returns what this machine lacks for a built-in backend, as a sentence; empty if nothing. Null
  /// if nothing can be missing. Called only for a backend that is used or listed, because detecting
  /// GPUs is slow.
  std::string (*what_is_missing_here)() = nullptr;

  /// Simulated backends: runs all ranks in this process.
  RunOutcome (*simulate)(const Scenario& scenario, const RankBody& body,
                         const RunObserver& observer) = nullptr;
  /// Real backends: runs the rank that the launcher's environment assigns to this process.
  RankProcessResult (*run_rank)(const Scenario& scenario, const RankEnvironment& environment,
                                const RankProcessOptions& options) = nullptr;

  /// Runs `body` on all ranks of the scenario and waits for them. Simulated ranks run in this
  /// process; real ones run in child processes of this same program (`gradsync worker`, which knows
  /// the bodies of rank_bodies.hpp). `observer` receives rank 0's progress; it may be empty.
  ///
  /// The ranks' processes write their reports to `directory`, which must be prepared
  /// (prepare_run_directory), or to a temporary directory if it is empty.
  ///
  /// The outcome contains what each rank did, including its error. Errors of the run as a whole are
  /// thrown: ConfigError for an unsuitable scenario, Error(kUsage) for a folder that cannot be
  /// written.
  RunOutcome run(const Scenario& scenario, const RankBody& body, const RunObserver& observer = {},
                 const std::string& directory = {}) const;

  bool is_built_in() const noexcept { return why_not.empty(); }
  /// Why it cannot be used in this build or on this machine; empty if it can.
  std::string why_not_here() const {
    return is_built_in() && what_is_missing_here != nullptr ? what_is_missing_here() : why_not;
  }
};

/// The backends of backend_descriptors(), in that order, built in or not.
const std::vector<Backend>& backends();

/// Throws Error(kBackendUnavailable) for an unknown name.
const Backend& find_backend(const std::string& name);
/// Same, but also throws, with the reason, if this build or machine lacks the backend.
const Backend& require_backend(const std::string& name);

}  // namespace gradsync
