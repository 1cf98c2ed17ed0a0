#include "gradsync/backends/nccl/nccl_communicator.hpp"

#include <chrono>
#include <thread>

#include <fmt/format.h>

namespace gradsync {
namespace {

using Steady = std::chrono::steady_clock;
constexpr std::chrono::microseconds kLook{20};  // poll interval of a call in progress
constexpr std::chrono::milliseconds kCreating{1};

constexpr const char* kStartHint =
    "run with NCCL_DEBUG=INFO to see how far it came, and look at docs/real-gpus.md (network "
    "interface, firewall, NCCL_SOCKET_IFNAME, /dev/shm)";

}  // namespace

NcclCommunicator::NcclCommunicator(NcclApi& api, const NcclUniqueId& id, const Options& options,
                                   const std::function<void()>& check)
    : api_(api), options_(options) {
  try {
    // Non-blocking: a missing rank would otherwise block this one inside NCCL forever.
    come_up(api_.init_rank(comm_, options.size, id, options.rank, options.name), check);
  } catch (...) {
    abort();
    throw;
  }
}

NcclCommunicator::NcclCommunicator(NcclCommunicator& parent, const Options& options,
                                   const std::function<void()>& check)
    : api_(parent.api_), options_(options) {
  try {
    parent.enqueue("ncclCommSplit", [&](NcclComm comm) {
      return api_.split(comm, options.rank, comm_, options.name);
    });
    come_up(NcclResult::kInProgress, check);
  } catch (...) {
    parent.abort();  // first, because NCCL may be about to write the handle
    abort();
    throw;
  }
}

/// Polls until the new communicator is ready.
void NcclCommunicator::come_up(NcclResult result, const std::function<void()>& check) {
  const auto deadline = Steady::now() + options_.timeout;
  while (result == NcclResult::kInProgress) {
    check();
    const NcclResult asked = api_.get_async_error(comm_, result);
    if (asked != NcclResult::kSuccess) result = asked;
    if (result != NcclResult::kInProgress) break;
    if (Steady::now() > deadline) {
      throw Error(ErrorCode::kTimeout,
                  fmt::format("rank {}: NCCL's communicator \"{}\" of {} ranks did not come up "
                              "within {}, although all ranks have joined; {}",
                              options_.rank, options_.name, options_.size,
                              format_duration(options_.timeout), kStartHint));
    }
    std::this_thread::sleep_for(kCreating);
  }
  if (result != NcclResult::kSuccess) {
    throw Error(
        ErrorCode::kInternal,
        fmt::format("rank {}: NCCL could not make the communicator \"{}\" of {} ranks: {}; "
                    "{}",
                    options_.rank, options_.name, options_.size, describe(result), kStartHint));
  }
}

NcclCommunicator::~NcclCommunicator() {
  abort();
}

void NcclCommunicator::require_alive(const char* what) const {
  if (comm_ == nullptr) {
    throw Error(ErrorCode::kPeerFailed, fmt::format("{}: the communicator has been aborted", what));
  }
}

/// Waits until NCCL has accepted the call; before that, neither the stream nor the communicator may
/// be used.
void NcclCommunicator::finish(std::unique_lock<std::mutex>& lock, const char* what,
                              NcclResult result) {
  if (result == NcclResult::kSuccess) return;
  const auto deadline = Steady::now() + options_.timeout;
  while (result == NcclResult::kInProgress) {
    if (Steady::now() > deadline) {
      throw Error(ErrorCode::kTimeout, fmt::format("{}: NCCL has not taken the call within {}",
                                                   what, format_duration(options_.timeout)));
    }
    lock.unlock();
    std::this_thread::sleep_for(kLook);
    lock.lock();
    require_alive(what);
    const NcclResult asked = api_.get_async_error(comm_, result);
    if (asked != NcclResult::kSuccess) result = asked;
  }
  if (result != NcclResult::kSuccess) throw failure(what, result);
}

Error NcclCommunicator::failure(const char* what, NcclResult result) {
  return Error(ErrorCode::kInternal, fmt::format("{}: {}", what, describe(result)));
}

NcclResult NcclCommunicator::async_error() {
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) return NcclResult::kSuccess;
  NcclResult error = NcclResult::kSuccess;
  const NcclResult asked = api_.get_async_error(comm_, error);
  return asked == NcclResult::kSuccess ? error : asked;
}

std::string NcclCommunicator::describe(NcclResult result) {
  return fmt::format("{} ({})", to_string(result), api_.last_error(comm_));
}

bool NcclCommunicator::aborted() {
  const std::lock_guard lock(mutex_);
  return comm_ == nullptr;
}

void NcclCommunicator::abort() noexcept {
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) return;
  // NCCL frees the communicator even if abort reports an error; there is nothing left to do.
  static_cast<void>(api_.abort(comm_));
  comm_ = nullptr;
}

void NcclCommunicator::close() noexcept {
  try {
    std::unique_lock lock(mutex_);
    if (comm_ == nullptr) return;
    finish(lock, "ncclCommFinalize", api_.finalize(comm_));
    static_cast<void>(api_.destroy(comm_));
    comm_ = nullptr;
  } catch (const Error&) {
    abort();  // a peer left without shutdown; this rank's work is complete anyway
  }
}

}  // namespace gradsync
