#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "gradsync/backends/store/rank_environment.hpp"
#include "gradsync/backends/store/store.hpp"
#include "gradsync/backends/store/tcp_store.hpp"
#include "gradsync/backends/store/tcp_store_server.hpp"

namespace gradsync {

/// A rank's connection to the job's store. Rank 0 hosts the server, unless a launcher does.
struct JobStore {
  std::unique_ptr<TcpStoreServer> server;  ///< null if another process hosts the server
  std::shared_ptr<TcpStore> connection;    ///< for close()
  std::shared_ptr<Store> store;            ///< `connection` with the job's key prefix
};

/// Starts the server (on rank 0 without an agent store) and connects. Throws Error(kMisuse) if
/// rank 0 cannot listen, saying what holds the port, or if no store answers before the timeout.
JobStore open_job_store(const RankEnvironment& environment, Seconds timeout);

/// Another connection to a store that is already running, for a thread that must be able to close
/// its own connection.
JobStore connect_job_store(const RankEnvironment& environment, Seconds timeout);

/// Key prefix of the job in a store that may be shared: "gradsync/JOB_ID".
std::string store_prefix(const RankEnvironment& environment);

/// The ranks that did not come to the rendezvous in time.
class RanksMissing : public Error {
 public:
  RanksMissing(const std::string& message, std::vector<int> ranks)
      : Error(ErrorCode::kTimeout, message), ranks_(std::move(ranks)) {}
  const std::vector<int>& ranks() const noexcept { return ranks_; }

 private:
  std::vector<int> ranks_;
};

/// Blocks until all ranks have called it. After `timeout`, throws RanksMissing listing the ranks
/// that joined and those that did not. If ranks disagree about the world size or two processes
/// claim the same rank, every rank that waits throws Error(kMisuse) at once, with the same
/// sentence. Call it once per store (or prefix).
void join_all_ranks(Store& store, int rank, int world_size, Seconds timeout);

/// `join_all_ranks` in the store of a job. If a missing rank came as part of another job or
/// restart, throws Error(kMisuse) that names both.
void join_job(const JobStore& job, const RankEnvironment& environment, Seconds timeout);

/// The origin of the ranks' WallClocks: the time at which rank 0 called. All ranks must call it.
std::chrono::steady_clock::time_point share_clock_origin(Store& store, int rank, Seconds timeout);

}  // namespace gradsync
