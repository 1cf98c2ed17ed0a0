#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>

#include "gradsync/core/units.hpp"

namespace gradsync {

/// One line on a terminal that says how a long simulation goes: the simulated time, and steps and
/// events a second of real time. An event is an instant at which something happens in the
/// simulation. It is written over and over, at most five times a second, and not at all in the
/// first second.
class ProgressLine {
 public:
  /// `wall`: real time, from any origin.
  ProgressLine(std::ostream& stream, std::function<Seconds()> wall);

  void event(Seconds simulated_delta);
  void step();
  /// Wipes the line away; it comes back with the next event that is due.
  void clear();

 private:
  void print(Seconds now);

  std::ostream& stream_;
  std::function<Seconds()> wall_;
  Seconds begin_;
  Seconds next_;
  Seconds simulated_{0};
  std::int64_t events_ = 0;
  std::int64_t steps_ = 0;
  bool shown_ = false;
};

}  // namespace gradsync
