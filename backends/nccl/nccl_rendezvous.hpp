#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "gradsync/backends/nccl/nccl_api.hpp"
#include "gradsync/backends/store/rendezvous.hpp"

namespace gradsync {

/// What the ranks of a group tell each other through the store before NCCL can connect them.
class NcclRendezvous {
 public:
  NcclRendezvous(const RankEnvironment& environment, const std::shared_ptr<Store>& store,
                 const std::string& group, Seconds timeout);

  /// Blocks until all ranks have joined. Throws Error(kTimeout) with the ranks that did not come.
  void join();
  /// Throws Error(kUsage) where ranks have different versions of NCCL or two have one GPU.
  void check_alike(int nccl_version, const std::string& pci_id);
  /// The id that rank 0 makes, on every rank. While a rank waits for it, it calls `check`, which
  /// throws when the wait is in vain.
  NcclUniqueId exchange_id(NcclApi& api, const std::function<void()>& check);

  Seconds time_left() const;

 private:
  std::string wait_for(const std::string& key, const std::function<void()>& check);
  /// Claims `key` for `mine`; what the first to claim it said.
  std::string first_claim(const std::string& key, const std::string& mine);

  RankEnvironment environment_;
  PrefixStore store_;
  std::chrono::steady_clock::time_point deadline_;
};

}  // namespace gradsync
