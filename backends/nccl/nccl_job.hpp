#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "gradsync/backends/nccl/nccl_work.hpp"
#include "gradsync/backends/store/end_watcher.hpp"
#include "gradsync/backends/store/rendezvous.hpp"
#include "gradsync/comm/flight_recorder.hpp"

namespace gradsync {

/// What the groups of a rank have in common: how the job ends, on this rank and on the others. The
/// first failure anywhere is published through the store, and ends every group of every rank.
/// Thread-safe.
class NcclJob {
 public:
  NcclJob(const RankEnvironment& environment, std::shared_ptr<Store> store, Seconds timeout);

  int rank() const noexcept { return env_.rank; }
  int size() const noexcept { return env_.world_size; }
  const std::shared_ptr<Store>& store() const noexcept { return store_; }
  const std::shared_ptr<GroupFailure>& failure() const noexcept { return failure_; }

  /// To be called when all ranks have joined: before, there is no job whose end could be told.
  void watch_for_end();
  void stop_watching() { end_watcher_.reset(); }

  /// Publishes the failure unless there was one, and ends this rank's works. Returns the one that
  /// holds.
  Failure fail(const Failure& failure);
  bool failed() const noexcept { return failure_->failed(); }
  /// All ranks have announced their end.
  bool all_ended();
  /// Waits until there is a failure; false if none comes in time.
  bool wait_for_failure(Seconds timeout);
  void wait_for_failure();

  /// The collective that the host is at.
  void host_is_at(const CollectiveRecord& record);
  void throw_if_failed();

  /// A group's watchdog begins, and ends. After a failure it says at its end which collective, the
  /// first of its group, the GPU has not finished.
  void watchdog_begins();
  void watchdog_ends(const std::optional<CollectiveRecord>& unfinished);
  /// What a wait for the GPU asks over and over: throws where a collective in the streams has
  /// failed, so that the wait is in vain. Where none has, the GPU gets to the end by itself, and
  /// the rank's next collective says more than this wait could; but not for long.
  void check_device_wait();

  /// Announces this rank's end and waits for the others'; `record` is named in errors.
  void shutdown(const CollectiveRecord& record);

  /// Guards the state of all groups of this rank; `changed` tells of its changes.
  std::mutex mutex;
  std::condition_variable changed;

 private:
  void stop(const Failure& failure);

  const RankEnvironment env_;
  const std::shared_ptr<Store> store_;
  const Seconds timeout_;
  const std::shared_ptr<GroupFailure> failure_ = std::make_shared<GroupFailure>();
  // Guarded by mutex.
  bool all_ended_ = false;
  CollectiveRecord host_record_;
  int watchdogs_ = 0;  // that have not ended
  std::optional<CollectiveRecord> unfinished_;
  std::chrono::steady_clock::time_point failed_at_;

  std::unique_ptr<EndWatcher> end_watcher_;
};

}  // namespace gradsync
