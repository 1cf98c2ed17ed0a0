#pragma once

#include <memory>
#include <string>

#include "backends/store/rank_environment.hpp"
#include "backends/store/store.hpp"
#include "backends/store/tcp_store.hpp"
#include "backends/store/tcp_store_server.hpp"

namespace gradsync {

/// A rank's way to the job's store. Rank 0 holds the server, unless a launcher does.
struct JobStore {
  std::unique_ptr<TcpStoreServer> server;  ///< null where another process serves
  std::shared_ptr<TcpStore> connection;    ///< for close()
  std::shared_ptr<Store> store;            ///< `connection` under the job's prefix
};

/// Serves (rank 0 without an agent store) and connects. Errors as of TcpStoreServer and TcpStore.
JobStore open_job_store(const RankEnvironment& environment, Seconds timeout);

/// Another connection to the same store, under the same prefix, for a thread that blocks in it.
JobStore open_more(const RankEnvironment& environment, Seconds timeout);

/// Prefix of the job's keys in a store that others may use too: "gradsync/JOB_ID".
std::string store_prefix(const RankEnvironment& environment);

/// Blocks until all ranks have called it, or `timeout` ends: then Error(kTimeout) that says which
/// ranks came and which did not. `description` of this rank (host, process id) is what the others
/// print of it.
void join_all_ranks(Store& store, int rank, int world_size, Seconds timeout);

}  // namespace gradsync
