#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "gradsync/simulator/kernel/sim_engine.hpp"

namespace gradsync {

/// Lets the actors of ranks wait for one another, each for at most `timeout` of simulated time.
///
/// A wait is not a simulation event: if only waiting ranks are left, SimGrid detects a deadlock at
/// that time, however far away their timeouts are.
class WaitingRoom {
 public:
  enum class Outcome { kWoken, kTimedOut };

  WaitingRoom(SimEngine& engine, int ranks, Seconds timeout);

  /// On the rank's actor: returns immediately if `over()` (called in the kernel) is true; otherwise
  /// blocks until `wake(rank)` or the timeout.
  Outcome wait(int rank, const std::function<bool()>& over);
  /// In the kernel: ends the wait of `rank`, if it waits.
  void wake(int rank);
  Seconds timeout() const noexcept { return timeout_; }

 private:
  struct Seat {
    simgrid::s4u::SemaphorePtr wakeup;  // keeps a wake-up that precedes the wait
    bool waiting = false;
    bool timed_out = false;
    std::int64_t visits = 0;
  };
  struct Deadline {
    Seconds date;
    int rank;
    std::int64_t visit;
  };
  /// Ends the waits whose deadline is `reached` or earlier, and sets the watchdog for the next one.
  void watch(Seconds reached);

  SimEngine* engine_;
  Seconds timeout_;
  std::vector<Seat> seats_;
  std::deque<Deadline> deadlines_;  // by date; may include those of ended waits
};

}  // namespace gradsync
