#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "gradsync/backends/nccl/nccl_api.hpp"
#include "gradsync/backends/store/rendezvous.hpp"

namespace gradsync {

/// The exchange between the ranks of a group through the store before NCCL can connect them.
class NcclRendezvous {
 public:
  NcclRendezvous(const RankEnvironment& environment, const std::shared_ptr<Store>& store,
                 const std::string& group, Seconds timeout);

  /// Blocks until all ranks have joined. Throws Error(kTimeout) naming the missing ranks.
  void join();
  /// Throws Error(kUsage) if ranks have different NCCL versions or two ranks share a GPU.
  void check_alike(int nccl_version, const std::string& pci_id);
  /// Distributes the id created by rank 0 to every rank. Calls `check` while waiting; `check`
  /// throws if the wait is pointless.
  NcclUniqueId exchange_id(NcclApi& api, const std::function<void()>& check);

  Seconds time_left() const;

 private:
  std::string wait_for(const std::string& key, const std::function<void()>& check);
  /// Claims `key` with the value `mine`; returns the value of the first rank to claim it.
  std::string first_claim(const std::string& key, const std::string& mine);

  RankEnvironment environment_;
  PrefixStore store_;
  std::chrono::steady_clock::time_point deadline_;
};

}  // namespace gradsync
