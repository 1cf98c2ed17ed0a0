#pragma once

#include <chrono>
#include <memory>
#include <string>

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

/// Starts the server (on rank 0 without an agent store) and connects. Throws as TcpStoreServer and
/// TcpStore do.
JobStore open_job_store(const RankEnvironment& environment, Seconds timeout);

/// Another connection to a store that is already running, for a thread that must be able to close
/// its own connection.
JobStore connect_job_store(const RankEnvironment& environment, Seconds timeout);

/// Key prefix of the job in a store that may be shared: "gradsync/JOB_ID".
std::string store_prefix(const RankEnvironment& environment);

/// Blocks until all ranks have called it. After `timeout`, throws Error(kTimeout) listing the ranks
/// that joined and those that did not. Throws Error(kUsage) if ranks disagree about the world size
/// or two processes claim the same rank. Call it once per store (or prefix).
void join_all_ranks(Store& store, int rank, int world_size, Seconds timeout);

/// The origin of the ranks' WallClocks: the time at which rank 0 called. All ranks must call it.
std::chrono::steady_clock::time_point share_clock_origin(Store& store, int rank, Seconds timeout);

}  // namespace gradsync
