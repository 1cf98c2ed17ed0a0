#include "gradsync/backends/nccl/nccl_rendezvous.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"

namespace gradsync {
namespace {

std::string version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

/// Whether NCCL is configured to accept several ranks on one GPU.
bool may_share_gpus() {
  return process_environment("NCCL_MULTI_RANK_GPU_ENABLE").has_value() ||
         process_environment("NCCL_HOSTID").has_value();
}

}  // namespace

NcclRendezvous::NcclRendezvous(const RankEnvironment& environment,
                               const std::shared_ptr<Store>& store, const std::string& group,
                               Seconds timeout)
    : environment_(environment),
      store_("group/" + group, store),
      deadline_(std::chrono::steady_clock::now() +
                std::chrono::duration_cast<std::chrono::steady_clock::duration>(timeout)) {}

Seconds NcclRendezvous::time_left() const {
  constexpr Seconds kLeast{0.001};
  return std::max<Seconds>(kLeast, deadline_ - std::chrono::steady_clock::now());
}

std::string NcclRendezvous::first_claim(const std::string& key, const std::string& mine) {
  return store_.compare_set(key, "", mine, time_left());
}

void NcclRendezvous::join() {
  join_all_ranks(store_, environment_.rank, environment_.world_size, time_left());
}

void NcclRendezvous::check_alike(int nccl_version, const std::string& pci_id) {
  const int rank = environment_.rank;
  const std::string version = version_text(nccl_version);
  const std::string first_version = first_claim("nccl_version", version);
  if (first_version != version) {
    throw Error(
        ErrorCode::kUsage,
        fmt::format("rank {} has NCCL {}, another rank has {}: NCCL needs one version on all "
                    "ranks",
                    rank, version, first_version));
  }
  if (may_share_gpus()) return;
  const std::string gpu = host_name() + "/" + pci_id;
  const std::string owner = first_claim("gpu/" + gpu, std::to_string(rank));
  if (owner != std::to_string(rank)) {
    throw Error(
        ErrorCode::kUsage,
        fmt::format("ranks {} and {} both use GPU {}: NCCL wants a GPU for each rank. Start "
                    "as many ranks as there are GPUs (LOCAL_RANK chooses), or see \"several "
                    "ranks on one GPU\" in docs/real-gpus.md",
                    owner, rank, gpu));
  }
}

std::string NcclRendezvous::wait_for(const std::string& key, const std::function<void()>& check) {
  constexpr Seconds kLook{0.1};
  while (true) {
    check();
    const Seconds left = time_left();
    try {
      return store_.get(key, std::min(kLook, left));
    } catch (const StoreTimeout&) {
      if (left <= kLook) throw;
    }
  }
}

NcclUniqueId NcclRendezvous::exchange_id(NcclApi& api, const std::function<void()>& check) {
  constexpr const char* kKey = "nccl_id";
  NcclUniqueId id;
  if (environment_.rank == 0) {
    const NcclResult result = api.get_unique_id(id);
    if (result != NcclResult::kSuccess) {
      throw Error(ErrorCode::kInternal,
                  fmt::format("rank 0: NCCL could not make an id: {} ({}); is there a network "
                              "interface that NCCL may use (NCCL_SOCKET_IFNAME)?",
                              to_string(result), api.last_error(nullptr)));
    }
    store_.set(kKey, {id.bytes.data(), id.bytes.size()}, time_left());
    return id;
  }
  const std::string bytes = wait_for(kKey, check);
  if (bytes.size() != id.bytes.size()) {
    throw Error(ErrorCode::kInternal, "rank 0 published an id of NCCL's that is cut off");
  }
  std::copy(bytes.begin(), bytes.end(), id.bytes.begin());
  return id;
}

}  // namespace gradsync
