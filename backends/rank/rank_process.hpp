#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "gradsync/backends/rank/termination_watch.hpp"
#include "gradsync/backends/store/rendezvous.hpp"
#include "gradsync/testbed/rank/rank_body.hpp"

namespace gradsync {

/// Options of a rank that runs in its own process.
struct RankProcessOptions {
  RankBody body;
  RunObserver observer;  ///< of this rank's events; may be empty
  /// Where this rank writes ranks/rank-N.json (see write_report_file); empty: no file.
  std::string run_directory;
  /// Gather the reports of all ranks on rank 0 through the store (under a foreign launcher).
  bool gather_reports = false;
};

struct RankProcessResult {
  RankReport report;
  /// On rank 0 with `gather_reports`: the reports of all ranks, by rank; otherwise empty.
  std::vector<RankReport> all_reports;
  bool terminated = false;  ///< by SIGTERM
  /// Exit status of this rank's process: 0, exit_status(*report.error_code), or 143 after SIGTERM.
  int exit_status() const;
};

/// One rank of a real backend in its own process, as the backend sees it.
class RankProcess {
 public:
  /// Tells all ranks that this one failed (see GlooProcessGroup::abort).
  using Abort = std::function<void(ErrorCode code, const std::string& cause)>;

  RankProcess(const Scenario& scenario, const RankEnvironment& environment,
              const RankProcessOptions& options, const JobStore& job, TerminationWatch& termination,
              RankReport& report)
      : scenario_(scenario),
        environment_(environment),
        options_(options),
        job_(job),
        termination_(termination),
        report_(report) {}

  const JobStore& job() const noexcept { return job_; }
  /// The origin of the ranks' wall clocks; all ranks must call it.
  std::chrono::steady_clock::time_point clock_origin() const;

  /// Runs the training with this group; call it once. Errors outside of collectives are reported to
  /// the other ranks.
  void run(ProcessGroup& group, const Abort& abort, Clock& clock, Device& device);

 private:
  const Scenario& scenario_;
  const RankEnvironment& environment_;
  const RankProcessOptions& options_;
  const JobStore& job_;
  TerminationWatch& termination_;
  RankReport& report_;
};

/// Runs a complete rank: store, rendezvous, `backend` (which creates the process group and calls
/// RankProcess::run), and reports. An error that ends the rank is recorded in the report, not
/// thrown; the report is always written.
///
/// On SIGTERM the rank notifies the others and fails in its next collective. If it does not reach
/// one within a second, the process writes its last report and exits with status 143.
RankProcessResult run_rank_process(const Scenario& scenario, const RankEnvironment& environment,
                                   const RankProcessOptions& options,
                                   const std::function<void(RankProcess&)>& backend);

}  // namespace gradsync
