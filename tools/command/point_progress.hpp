#pragma once

#include <cstddef>

namespace gradsync {

/// Prints "3 of 12 runs, 1 from before" to standard error during many runs, if that is a terminal.
class PointProgress {
 public:
  explicit PointProgress(std::size_t total);
  /// Announces `more` further runs.
  void expect(std::size_t more) { total_ += more; }
  void done(bool reused);
  /// Erases the line.
  void clear();

 private:
  void print() const;

  bool on_terminal_;
  std::size_t total_;
  std::size_t done_ = 0;
  std::size_t reused_ = 0;
};

}  // namespace gradsync
