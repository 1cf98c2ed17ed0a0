#pragma once

#include <cstddef>

namespace gradsync {

/// "3 of 12 runs, 1 from before" on standard error while many runs go on; silent unless that is a
/// terminal.
class PointProgress {
 public:
  explicit PointProgress(std::size_t total);
  /// `more` runs will follow.
  void expect(std::size_t more) { total_ += more; }
  void done(bool reused);
  /// Wipes the line away.
  void clear();

 private:
  void print() const;

  bool on_terminal_;
  std::size_t total_;
  std::size_t done_ = 0;
  std::size_t reused_ = 0;
};

}  // namespace gradsync
