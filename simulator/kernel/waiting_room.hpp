#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "gradsync/simulator/kernel/sim_engine.hpp"

namespace gradsync {

/// Where the actors of ranks wait for one another, each for at most `timeout` of simulated time.
///
/// A wait is not an event of the simulation: when all that is left are ranks that wait, SimGrid
/// finds a deadlock at that instant, however far away their timeouts are.
class WaitingRoom {
 public:
  enum class Outcome { kWoken, kTimedOut };

  WaitingRoom(SimEngine& engine, int ranks, Seconds timeout);

  /// Actor of `rank`: returns at once if `over()` (called in the kernel) is true; else waits for
  /// `wake(rank)` or the timeout.
  Outcome wait(int rank, const std::function<bool()>& over);
  /// Kernel: ends the wait of `rank`, if it waits.
  void wake(int rank);
  Seconds timeout() const noexcept { return timeout_; }

 private:
  struct Seat {
    simgrid::s4u::SemaphorePtr wakeup;  // keeps a wake-up that comes before the actor has blocked
    bool waiting = false;
    bool timed_out = false;
    std::int64_t visits = 0;
  };
  struct Deadline {
    Seconds date;
    int rank;
    std::int64_t visit;
  };
  /// Ends the waits whose deadline is at `reached` or before, and sets the watchdog for the next.
  void watch(Seconds reached);

  SimEngine* engine_;
  Seconds timeout_;
  std::vector<Seat> seats_;
  std::deque<Deadline> deadlines_;  // in the order of their dates; those of ended waits linger
};

}  // namespace gradsync
