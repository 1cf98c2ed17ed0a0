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

/// Answers, while a rank runs, who asks for its report: through the job's store (request_dumps),
/// or by SIGUSR1, after which it is in RUN/ranks/rank-N.dump.json. Costs nothing until somebody
/// asks: both threads sleep.
///
/// At most one in a process.
class DumpService {
 public:
  /// `snapshot` is called on the service's threads. Without a `run_directory` SIGUSR1 writes to the
  /// working directory. Throws what connecting to the store throws.
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

/// What a rank of a live job says of the job as a whole, for those who come later.
void publish_scenario(Store& store, const std::string& scenario, Seconds timeout);

struct LiveJob {
  std::string scenario;  ///< its text
  int world_size = 0;
  std::vector<RankReport> reports;  ///< of the ranks that answered in time
};
/// Asks all ranks of the job whose keys `store` holds. Throws StoreTimeout where no job has
/// published itself.
LiveJob request_dumps(Store& store, Seconds timeout);

}  // namespace gradsync
