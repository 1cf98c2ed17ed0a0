#include "tools/command/point_progress.hpp"

#include <unistd.h>

#include <iostream>

#include <fmt/format.h>

namespace gradsync {

PointProgress::PointProgress(std::size_t total)
    : on_terminal_(::isatty(STDERR_FILENO) == 1), total_(total) {
  print();
}

void PointProgress::done(bool reused) {
  ++done_;
  if (reused) ++reused_;
  print();
}

void PointProgress::clear() {
  if (on_terminal_) std::cerr << "\r\x1b[K" << std::flush;
}

void PointProgress::print() const {
  if (!on_terminal_) return;
  std::cerr << fmt::format("\r\x1b[K{} of {} runs", done_, total_)
            << (reused_ > 0 ? fmt::format(", {} done before", reused_) : "") << std::flush;
}

}  // namespace gradsync
