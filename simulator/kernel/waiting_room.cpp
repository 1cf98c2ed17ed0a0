#include "gradsync/simulator/kernel/waiting_room.hpp"

namespace gradsync {

WaitingRoom::WaitingRoom(SimEngine& engine, int ranks, Seconds timeout)
    : engine_(&engine), timeout_(timeout), seats_(static_cast<std::size_t>(ranks)) {
  for (Seat& seat : seats_) seat.wakeup = simgrid::s4u::Semaphore::create(0);
}

WaitingRoom::Outcome WaitingRoom::wait(int rank, const std::function<bool()>& over) {
  Seat& seat = seats_[static_cast<std::size_t>(rank)];
  bool must_wait = false;
  engine_->in_kernel([&] {
    if (over()) return;
    must_wait = true;
    seat.waiting = true;
    seat.timed_out = false;
    ++seat.visits;
    deadlines_.push_back({engine_->now() + timeout_, rank, seat.visits});
    if (deadlines_.size() == 1) watch(engine_->now());
  });
  if (!must_wait) return Outcome::kWoken;
  seat.wakeup->acquire();
  return seat.timed_out ? Outcome::kTimedOut : Outcome::kWoken;
}

void WaitingRoom::wake(int rank) {
  Seat& seat = seats_[static_cast<std::size_t>(rank)];
  if (!seat.waiting) return;
  seat.waiting = false;
  seat.wakeup->release();
}

void WaitingRoom::watch(Seconds reached) {
  while (!deadlines_.empty()) {
    const Deadline next = deadlines_.front();
    Seat& seat = seats_[static_cast<std::size_t>(next.rank)];
    const bool still_waiting = seat.waiting && seat.visits == next.visit;
    if (still_waiting && next.date > reached) {
      // Use the date itself instead of now(), which may be off by a rounding error.
      engine_->set_watchdog(next.date, [this, date = next.date] { watch(date); });
      return;
    }
    deadlines_.pop_front();
    if (still_waiting) {
      seat.timed_out = true;
      wake(next.rank);
    }
  }
}

}  // namespace gradsync
