#pragma once

#include <csignal>
#include <functional>
#include <mutex>
#include <thread>

namespace gradsync {

/// Handles the first SIGTERM on a separate thread, where non-async-signal-safe calls are allowed.
/// At most one per process; the previous handler is restored at the end.
class TerminationWatch {
 public:
  TerminationWatch();
  ~TerminationWatch();
  TerminationWatch(const TerminationWatch&) = delete;
  TerminationWatch& operator=(const TerminationWatch&) = delete;

  /// `on_signal` asks the rank to end. If this object still exists shortly afterwards, `last_words`
  /// writes what is known without the rank's help, and the process exits with status 143. Both run
  /// on the watch's thread; clear() waits for a running call.
  void set(std::function<void()> on_signal, std::function<void()> last_words);
  void clear();

  /// True once the signal has arrived.
  bool terminated() const;

 private:
  void watch();
  struct sigaction old_action_ {};
  int signal_fd_;
  int end_fd_;
  mutable std::mutex mutex_;
  bool terminated_ = false;
  std::function<void()> on_signal_;
  std::function<void()> last_words_;
  std::thread thread_;
};

}  // namespace gradsync
