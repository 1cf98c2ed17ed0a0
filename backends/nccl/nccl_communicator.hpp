#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "gradsync/backends/nccl/nccl_api.hpp"
#include "gradsync/core/error.hpp"

namespace gradsync {

/// A non-blocking communicator that enforces NCCL's rules: one thread at a time, no call before the
/// previous one has completed, abort from any thread, and no call after an abort.
///
/// Thread-safe. No call blocks for long: while NCCL reports kInProgress the lock is released
/// between polls, so that a watchdog can abort.
class NcclCommunicator {
 public:
  struct Options {
    int rank = 0;
    int size = 1;
    std::string name;
    Seconds timeout{0};  ///< for the creation, and for each call that NCCL does not accept at once
  };

  /// Collective. Calls `check` while it waits for the other ranks; `check` throws if the wait is
  /// pointless. Throws Error(kTimeout) at the deadline and Error(kInternal) with NCCL's message;
  /// the partly created communicator is then aborted.
  NcclCommunicator(NcclApi& api, const NcclUniqueId& id, const Options& options,
                   const std::function<void()>& check);
  /// Splits a communicator of the same ranks off `parent`, which must be idle. On failure `parent`
  /// is aborted too.
  NcclCommunicator(NcclCommunicator& parent, const Options& options,
                   const std::function<void()>& check);
  /// Frees the communicator; aborts it if `close` was not called.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  /// Makes a call that enqueues work in a stream; returns once it is enqueued. Throws
  /// Error(kPeerFailed) if the communicator has been aborted, otherwise Error(kInternal) with
  /// NCCL's message.
  template <typename Call>  // NcclResult(NcclComm)
  void enqueue(const char* what, Call&& call) {
    std::unique_lock lock(mutex_);
    require_alive(what);
    finish(lock, what, call(comm_));
  }

  /// NCCL's asynchronous status: kSuccess, kInProgress or an error; kSuccess after abort.
  NcclResult async_error();
  std::string describe(NcclResult result);
  bool aborted();

  /// Aborts pending work on this rank immediately. Later calls throw. Idempotent.
  void abort() noexcept;
  /// Collective; call it when all work has completed. Aborts after the timeout.
  void close() noexcept;

 private:
  void come_up(NcclResult result, const std::function<void()>& check);
  void require_alive(const char* what) const;
  void finish(std::unique_lock<std::mutex>& lock, const char* what, NcclResult result);
  Error failure(const char* what, NcclResult result);

  NcclApi& api_;
  Options options_;
  std::mutex mutex_;
  NcclComm comm_ = nullptr;  // null once freed
};

}  // namespace gradsync
