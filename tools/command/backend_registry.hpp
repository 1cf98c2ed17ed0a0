#pragma once

#include <string>
#include <vector>

#include "gradsync/backends/rank/rank_process.hpp"
#include "gradsync/testbed/rank/rank_body.hpp"
#include "gradsync/testbed/result/run_result.hpp"
#include "gradsync/testbed/scenario/backend_descriptor.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// What runs ranks, real or simulated, and all that the command knows of it.
struct Backend {
  BackendDescriptor descriptor;
  std::string why_not;  ///< why this build does not have it; empty where it does

  /// What this machine lacks for a backend that is built in, as a sentence; empty: nothing. Null:
  /// nothing can be lacking. Only asked of a backend that is wanted or listed: looking for GPUs
  /// takes a moment.
  std::string (*what_is_missing_here)() = nullptr;

  /// Of a simulated backend: all ranks, in this process.
  RunOutcome (*simulate)(const Scenario& scenario, const RankBody& body,
                         const RunObserver& observer) = nullptr;
  /// Of a real one: the rank that this process is, as a launcher's environment says.
  RankProcessResult (*run_rank)(const Scenario& scenario, const RankEnvironment& environment,
                                const RankProcessOptions& options) = nullptr;

  /// Runs `body` on all ranks of the scenario and waits for them: in this process where they are
  /// simulated, else each in one of its own, which is this program again (`gradsync worker`, which
  /// knows the bodies of rank_bodies.hpp). `observer` is told of rank 0's progress; it may be
  /// empty.
  ///
  /// The ranks' processes leave their reports in `directory`, which must be prepared
  /// (prepare_run_directory), or in a temporary one where it is empty.
  ///
  /// What a rank did, its error too, is in the outcome. What concerns the run as a whole is thrown:
  /// ConfigError for a scenario that does not fit, Error(kUsage) for a folder that cannot be
  /// written.
  RunOutcome run(const Scenario& scenario, const RankBody& body, const RunObserver& observer = {},
                 const std::string& directory = {}) const;

  bool is_built_in() const noexcept { return why_not.empty(); }
  /// Why it cannot be used here and now; empty where it can.
  std::string why_not_here() const {
    return is_built_in() && what_is_missing_here != nullptr ? what_is_missing_here() : why_not;
  }
};

/// Those of backend_descriptors(), in that order, built in or not.
const std::vector<Backend>& backends();

/// Throws Error(kBackendUnavailable) for a name that is not in the list.
const Backend& find_backend(const std::string& name);
/// The same for a backend that this build or this machine does not have: the error says why.
const Backend& require_backend(const std::string& name);

}  // namespace gradsync
