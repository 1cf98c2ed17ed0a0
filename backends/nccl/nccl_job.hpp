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

/// State shared by the groups of a rank: how the job ends, on this rank and on the others. The
/// first failure anywhere is published through the store and ends every group of every rank.
/// Thread-safe.
class NcclJob {
 public:
  NcclJob(const RankEnvironment& environment, std::shared_ptr<Store> store, Seconds timeout);

  int rank() const noexcept { return env_.rank; }
  int size() const noexcept { return env_.world_size; }
  const std::shared_ptr<Store>& store() const noexcept { return store_; }
  const std::shared_ptr<GroupFailure>& failure() const noexcept { return failure_; }

  /// Starts watching for the end of the job. Call it once all ranks have joined; before that, no
  /// rank can report an end.
  void watch_for_end();
  void stop_watching() { end_watcher_.reset(); }

  /// Publishes the failure unless there is an earlier one, and fails this rank's works. Returns the
  /// failure that holds.
  Failure fail(const Failure& failure);
  bool failed() const noexcept { return failure_->failed(); }
  /// True once all ranks have announced their end.
  bool all_ended();
  /// Blocks until there is a failure; returns false on timeout.
  bool wait_for_failure(Seconds timeout);
  void wait_for_failure();

  /// Records the collective that the host has reached.
  void host_is_at(const CollectiveRecord& record);
  void throw_if_failed();

  /// Called when a group's watchdog starts and stops. After a failure, the stopping watchdog
  /// reports the first collective of its group that the GPU has not finished.
  void watchdog_begins();
  void watchdog_ends(const std::optional<CollectiveRecord>& unfinished);
  /// Called repeatedly during host waits for the GPU. Throws if a collective in the streams has
  /// failed, because the wait is then pointless. If the job has failed but no collective of this
  /// rank has, the GPU finishes by itself and the rank's next collective gives the better error, so
  /// this wait goes on for a short time.
  void check_device_wait();

  /// Announces this rank's end and waits for the other ranks; errors name `record`.
  void shutdown(const CollectiveRecord& record);

  /// Guards the state of all groups of this rank; `changed` signals changes.
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
  int watchdogs_ = 0;  // not stopped yet
  std::optional<CollectiveRecord> unfinished_;
  std::chrono::steady_clock::time_point failed_at_;

  std::unique_ptr<EndWatcher> end_watcher_;
};

}  // namespace gradsync
