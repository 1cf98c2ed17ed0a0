#pragma once

#include "gradsync/core/units.hpp"

namespace gradsync {

/// The first seam: the current time of one rank, and how the rank spends time.
///
/// A clock belongs to one rank and is used only by that rank's thread (or actor), except for
/// `now()`, which a backend's communication thread may also call.
class Clock {
 public:
  virtual ~Clock() = default;

  /// Time since the start of the run. Wall clocks of ranks on one machine share their origin.
  virtual Seconds now() const = 0;

  /// Spends `duration` of *replayed* compute. A wall clock really waits. The simulated clock adds
  /// the duration to the rank's time debt, which `now()` includes and which the rank pays in one
  /// sleep when it next uses the network.
  virtual void advance(Seconds duration) = 0;

  /// Lets the rank's host idle for `duration` (it reads a file, compiles, or waits). On an
  /// asynchronous device, the host stops issuing work while the device drains its queue.
  virtual void sleep(Seconds duration) { advance(duration); }

  /// Charges `flops` of compute that really ran. A wall clock has already spent the time and does
  /// nothing; the simulated clock advances by flops / rate.
  virtual void charge_flops(double flops) = 0;

  /// True for asynchronous devices: the difference of two `now()` calls is then host time and says
  /// nothing about when the work ran.
  virtual bool is_behind_host() const noexcept { return false; }
  /// Writes to `time` the moment at which all work issued so far by the rank completes. A
  /// synchronous clock writes at once; an asynchronous one writes no later than the return of
  /// `settle_stamps`, so `time` must stay valid until then.
  virtual void stamp(Seconds& time) { time = now(); }
  /// Waits for all stamped work to complete. Throws if the device fails, or if a collective that it
  /// waits for fails.
  virtual void settle_stamps() {}
  /// Drops the unsettled stamps without writing them, for a step that was abandoned.
  virtual void forget_stamps() noexcept {}
};

}  // namespace gradsync
