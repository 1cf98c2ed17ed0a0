#pragma once

#include "gradsync/core/units.hpp"

namespace gradsync {

/// The first seam: what time it is for one rank, and how a rank spends it.
///
/// A clock belongs to one rank and is used by that rank's thread (or actor) alone, except `now()`,
/// which a backend's communication thread may call too.
class Clock {
 public:
  virtual ~Clock() = default;

  /// Time since the start of the run. Wall clocks of ranks on one machine share their origin.
  virtual Seconds now() const = 0;

  /// Spends `duration` of *replayed* compute. A wall clock really lets the time pass. The simulated
  /// clock adds it to the rank's debt, which is paid in one sleep when the rank next touches the
  /// network; `now()` includes the debt.
  virtual void advance(Seconds duration) = 0;

  /// Lets `duration` pass in the rank's program, which computes nothing meanwhile: it reads a file,
  /// compiles, waits. Where a device works on behind the host, the host stands still and the device
  /// runs out of work.
  virtual void sleep(Seconds duration) { advance(duration); }

  /// Charges compute that has really been done (`flops` operations). A wall clock has already
  /// spent the time and does nothing; the simulated clock advances by flops / rate.
  virtual void charge_flops(double flops) = 0;

  /// True where a device works on behind the host: what lies between two `now()` is then the host's
  /// time and says nothing of the work's.
  virtual bool is_behind_host() const noexcept { return false; }
  /// Writes into `time` when the work that the rank has issued so far is done: at once where a call
  /// returns with its work done; where a device works on behind the host, no later than the return
  /// of `settle_stamps`. `time` must stay where it is until then.
  virtual void stamp(Seconds& time) { time = now(); }
  /// Waits until everything that has been stamped has happened. Throws what the device's failure,
  /// or that of a collective which it waits for, throws.
  virtual void settle_stamps() {}
  /// Writes none of the stamps that are not settled: a step was left half-way.
  virtual void forget_stamps() noexcept {}
};

}  // namespace gradsync
