#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>

#include "gradsync/core/units.hpp"

namespace gradsync {

/// One line on a terminal with the progress of a long simulation: simulated time, and steps and
/// events per second of real time. An event is a time step of the simulation. The line is rewritten
/// at most five times per second, and not in the first second.
class ProgressLine {
 public:
  /// `wall`: real time, from any origin.
  ProgressLine(std::ostream& stream, std::function<Seconds()> wall);

  void event(Seconds simulated_delta);
  void step();
  /// Erases the line until the next event that redraws it.
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
