#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "gradsync/backends/store/rank_environment.hpp"
#include "gradsync/backends/store/store.hpp"
#include "gradsync/backends/store/tcp_store.hpp"
#include "gradsync/backends/store/tcp_store_server.hpp"

namespace gradsync {

/// A rank's way to the job's store. Rank 0 holds the server, unless a launcher does.
struct JobStore {
  std::unique_ptr<TcpStoreServer> server;  ///< null where another process serves
  std::shared_ptr<TcpStore> connection;    ///< for close()
  std::shared_ptr<Store> store;            ///< `connection` under the job's prefix
};

/// Serves (rank 0 without an agent store) and connects. Errors as of TcpStoreServer and TcpStore.
JobStore open_job_store(const RankEnvironment& environment, Seconds timeout);

/// A connection to a store that is served already: for a thread that has to be able to close its
/// own.
JobStore connect_job_store(const RankEnvironment& environment, Seconds timeout);

/// Prefix of the job's keys in a store that others may use too: "gradsync/JOB_ID".
std::string store_prefix(const RankEnvironment& environment);

/// Blocks until all ranks have called it, or `timeout` ends: then Error(kTimeout) that says which
/// ranks came and which did not. Error(kUsage) where ranks disagree about the world's size or two
/// processes claim one rank. Once per store (or prefix).
void join_all_ranks(Store& store, int rank, int world_size, Seconds timeout);

/// The origin of the ranks' WallClocks: when rank 0 called. All ranks call it.
std::chrono::steady_clock::time_point share_clock_origin(Store& store, int rank, Seconds timeout);

}  // namespace gradsync
