#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "gradsync/backends/store/failure.hpp"
#include "gradsync/backends/store/rendezvous.hpp"

namespace gradsync {

/// A thread that waits for the end of the job (see failure.hpp) on its own connection and reports
/// it. This is how a failure reaches every rank at once, not only those whose connection breaks.
class EndWatcher {
 public:
  /// Calls `on_end` once, on the watcher's thread: with nullopt if all ranks have ended, otherwise
  /// with the failure. A lost store counts as a failure of its host (rank 0 or the launcher).
  EndWatcher(const RankEnvironment& environment, Seconds connect_timeout,
             std::function<void(const std::optional<Failure>&)> on_end);
  /// Stops watching; `on_end` is not called any more.
  ~EndWatcher();
  EndWatcher(const EndWatcher&) = delete;
  EndWatcher& operator=(const EndWatcher&) = delete;

 private:
  void watch();

  RankEnvironment environment_;
  JobStore job_;
  std::function<void(const std::optional<Failure>&)> on_end_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

}  // namespace gradsync
