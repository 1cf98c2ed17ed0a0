#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "gradsync/backends/rank/termination_watch.hpp"
#include "gradsync/backends/store/rendezvous.hpp"
#include "gradsync/testbed/rank/rank_body.hpp"

namespace gradsync {

/// How one rank runs that is a process of its own.
struct RankProcessOptions {
  RankBody body;
  RunObserver observer;  ///< of this rank's events; may be empty
  /// Where this rank writes ranks/rank-N.json (see write_report_file); empty: nowhere.
  std::string run_directory;
  /// Bring the reports of all ranks to rank 0 through the store (under a foreign launcher).
  bool gather_reports = false;
};

struct RankProcessResult {
  RankReport report;
  /// Rank 0 with `gather_reports`: the reports of all ranks, by rank; else empty.
  std::vector<RankReport> all_reports;
  bool terminated = false;  ///< by SIGTERM
  /// Exit status of this rank's process: 0, exit_status(*report.error_code), or 143 after SIGTERM.
  int exit_status() const;
};

/// One rank of a real backend in a process of its own, as a backend sees it while it runs.
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
  /// Of the ranks' wall clocks; all ranks call it.
  std::chrono::steady_clock::time_point clock_origin() const;

  /// The body, with this group: once. Errors that are no collective's are told to the others.
  void run(ProcessGroup& group, const Abort& abort, Clock& clock, Device& device);

 private:
  const Scenario& scenario_;
  const RankEnvironment& environment_;
  const RankProcessOptions& options_;
  const JobStore& job_;
  TerminationWatch& termination_;
  RankReport& report_;
};

/// A whole rank: store, rendezvous, `backend`, which makes the process group and calls
/// RankProcess::run, and the reports. An error that ends the rank is in the report, not thrown; the
/// report is written in every case.
///
/// On SIGTERM the rank tells the others and ends in its next collective; if it does not come to one
/// within a second, the process writes down what it knows and ends with status 143.
RankProcessResult run_rank_process(const Scenario& scenario, const RankEnvironment& environment,
                                   const RankProcessOptions& options,
                                   const std::function<void(RankProcess&)>& backend);

}  // namespace gradsync
