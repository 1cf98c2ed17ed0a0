#include "gradsync/core/wall_clock.hpp"

#include <thread>

namespace gradsync {

void WallClock::advance(Seconds duration) {
  using Steady = std::chrono::steady_clock;
  if (duration <= Seconds(0)) return;
  constexpr std::chrono::microseconds kSpin{50};
  const auto end = Steady::now() + std::chrono::duration_cast<Steady::duration>(duration);
  std::this_thread::sleep_until(end - kSpin);
  while (Steady::now() < end) {
  }
}

}  // namespace gradsync
