#pragma once

#include <csignal>
#include <functional>
#include <mutex>
#include <thread>

namespace gradsync {

/// Turns the first SIGTERM into calls on a thread of its own, where everything may be done that a
/// signal handler may not do. One at a time in a process; the earlier handler comes back at the
/// end.
class TerminationWatch {
 public:
  TerminationWatch();
  ~TerminationWatch();
  TerminationWatch(const TerminationWatch&) = delete;
  TerminationWatch& operator=(const TerminationWatch&) = delete;

  /// `on_signal` asks the rank to end. If that has not happened a moment later (this object still
  /// exists), `last_words` writes down what is known without the rank's help, and the process ends
  /// with status 143. Both are called on the watch's thread; clear() waits for a call under way.
  void set(std::function<void()> on_signal, std::function<void()> last_words);
  void clear();

  /// True once the signal has come.
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
