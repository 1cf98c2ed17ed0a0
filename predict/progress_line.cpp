#include "gradsync/predict/progress_line.hpp"

#include <ostream>
#include <utility>

#include <fmt/format.h>

namespace gradsync {
namespace {

constexpr Seconds kQuietStart{1}, kInterval{0.2};
constexpr std::int64_t kEventsBetweenLooks = 64;  // reading the clock costs more than an event

}  // namespace

ProgressLine::ProgressLine(std::ostream& stream, std::function<Seconds()> wall)
    : stream_(stream), wall_(std::move(wall)), begin_(wall_()), next_(begin_ + kQuietStart) {}

void ProgressLine::event(Seconds simulated_delta) {
  simulated_ += simulated_delta;
  if (++events_ % kEventsBetweenLooks != 0) return;
  const Seconds now = wall_();
  if (now >= next_) print(now);
}

void ProgressLine::step() {
  ++steps_;
}

void ProgressLine::clear() {
  if (shown_) stream_ << "\r\x1b[K" << std::flush;
  shown_ = false;
}

void ProgressLine::print(Seconds now) {
  const double elapsed = (now - begin_).count();
  stream_
      << fmt::format(
             "\r\x1b[Ksimulated {:.3f} s, {} steps ({:.3g} per second), {:.3g} events per second",
             simulated_.count(), steps_, static_cast<double>(steps_) / elapsed,
             static_cast<double>(events_) / elapsed)
      << std::flush;
  shown_ = true;
  next_ = now + kInterval;
}

}  // namespace gradsync
