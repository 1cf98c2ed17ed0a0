#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gradsync/backends/store/rank_environment.hpp"
#include "gradsync/backends/store/rendezvous.hpp"
#include "gradsync/testbed/record/rank_report.hpp"

namespace gradsync {

/// Answers requests for the report of a running rank: through the job's store (request_dumps), or
/// by SIGUSR1, which writes RUN/ranks/rank-N.dump.json. Idle until requested: both threads sleep.
///
/// At most one per process.
class DumpService {
 public:
  /// `snapshot` is called on the service's threads. Without a `run_directory`, SIGUSR1 writes to
  /// the working directory. Throws if the connection to the store fails.
  DumpService(const RankEnvironment& environment, Seconds connect_timeout,
              std::string run_directory, std::function<RankReport()> snapshot);
  ~DumpService();
  DumpService(const DumpService&) = delete;
  DumpService& operator=(const DumpService&) = delete;

 private:
  void answer_store();
  void answer_signals();

  int rank_;
  std::string run_directory_;
  std::function<RankReport()> snapshot_;
  JobStore job_;
  int signal_fd_;
  std::atomic<bool> stopped_{false};
  std::thread store_thread_;
  std::thread signal_thread_;
};

/// Publishes the scenario of a live job, for later request_dumps calls.
void publish_scenario(Store& store, const std::string& scenario, Seconds timeout);

struct LiveJob {
  std::string scenario;  ///< JSON text
  int world_size = 0;
  std::vector<RankReport> reports;  ///< of the ranks that answered in time
};
/// Requests the reports of all ranks of the job in `store`. Throws StoreTimeout if no job has
/// published itself.
LiveJob request_dumps(Store& store, Seconds timeout);

}  // namespace gradsync
