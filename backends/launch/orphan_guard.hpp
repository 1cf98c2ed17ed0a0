#pragma once

namespace gradsync {

/// A small process that kills the ranks' process groups if the launcher ends without dismissing it
/// (kill -9, a crash), so that nothing of the job is left behind, including processes started by
/// ranks.
class OrphanGuard {
 public:
  OrphanGuard();
  /// Dismisses the guard.
  ~OrphanGuard();
  OrphanGuard(const OrphanGuard&) = delete;
  OrphanGuard& operator=(const OrphanGuard&) = delete;

  /// Where a child registers the group it leads, see add_this_group. Closed on exec.
  int fd() const noexcept { return fd_; }
  /// Registers the calling process's group with the guard behind `fd`. Called by the child, because
  /// the parent may die before it knows the group. Async-signal-safe.
  static void add_this_group(int fd) noexcept;
  /// Unregisters a group. Call it before the group id can be reused.
  void remove(int pgid);

 private:
  static void tell(int fd, int message) noexcept;

  int fd_ = -1;
  int pid_ = -1;
};

}  // namespace gradsync
