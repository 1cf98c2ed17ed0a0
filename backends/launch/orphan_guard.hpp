#pragma once

namespace gradsync {

/// A small process that outlives the launcher by a moment: when the launcher ends without having
/// dismissed it (kill -9, a crash) it kills the process groups of the ranks, so that nothing of the
/// job stays behind, not even what a rank had started.
class OrphanGuard {
 public:
  OrphanGuard();
  /// Dismisses the guard.
  ~OrphanGuard();
  OrphanGuard(const OrphanGuard&) = delete;
  OrphanGuard& operator=(const OrphanGuard&) = delete;

  /// Where a child that leads a group says so, see add_this_group. Closed when it runs a program.
  int fd() const noexcept { return fd_; }
  /// Has the calling process's group watched by the guard behind `fd`. The child calls it, because
  /// its parent may end before it knows the group. Async-signal-safe.
  static void add_this_group(int fd) noexcept;
  /// Forgets it. Call it before the id can be given to another process.
  void remove(int pgid);

 private:
  static void tell(int fd, int message) noexcept;

  int fd_ = -1;
  int pid_ = -1;
};

}  // namespace gradsync
