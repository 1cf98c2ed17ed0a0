#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "gradsync/backends/nccl/nccl_api.hpp"
#include "gradsync/core/error.hpp"

namespace gradsync {

/// A non-blocking communicator, with the rules of its use: one thread at a time inside NCCL, no
/// call before the one before it is through, abort by anybody and no call afterwards.
///
/// Thread-safe. No call blocks for long: where NCCL says kInProgress the lock is given up between
/// two looks, so that a watchdog can abort.
class NcclCommunicator {
 public:
  struct Options {
    int rank = 0;
    int size = 1;
    std::string name;
    Seconds timeout{0};  ///< of the creation, and of each call that NCCL does not take at once
  };

  /// Collective. While it waits for the others it calls `check`, which throws when the wait is in
  /// vain. Throws Error(kTimeout) when the deadline ends, Error(kInternal) with NCCL's words; the
  /// half-made communicator is aborted.
  NcclCommunicator(NcclApi& api, const NcclUniqueId& id, const Options& options,
                   const std::function<void()>& check);
  /// A communicator of the same ranks, split off `parent`, on which nothing may be under way. If it
  /// fails, `parent` is aborted as well.
  NcclCommunicator(NcclCommunicator& parent, const Options& options,
                   const std::function<void()>& check);
  /// Frees it: by `abort` if `close` was not called.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  /// Makes a call that puts work into a stream; returns when it is there. Throws Error(kPeerFailed)
  /// if the communicator has been aborted, Error(kInternal) with NCCL's words otherwise.
  template <typename Call>  // NcclResult(NcclComm)
  void enqueue(const char* what, Call&& call) {
    std::unique_lock lock(mutex_);
    require_alive(what);
    finish(lock, what, call(comm_));
  }

  /// What NCCL has noticed by itself: kSuccess, kInProgress or an error; kSuccess after abort.
  NcclResult async_error();
  std::string describe(NcclResult result);
  bool aborted();

  /// Ends what is under way here, at once. Calls after it throw. Idempotent.
  void abort() noexcept;
  /// Collective, when all work is done. Gives up, and aborts, after the timeout.
  void close() noexcept;

 private:
  void come_up(NcclResult result, const std::function<void()>& check);
  void require_alive(const char* what) const;
  void finish(std::unique_lock<std::mutex>& lock, const char* what, NcclResult result);
  Error failure(const char* what, NcclResult result);

  NcclApi& api_;
  Options options_;
  std::mutex mutex_;
  NcclComm comm_ = nullptr;  // null when it was freed
};

}  // namespace gradsync
