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

  /// Watches over the group `pgid`. Call it as soon as the group exists.
  void add(int pgid);
  /// Forgets it. Call it before the id can be given to another process.
  void remove(int pgid);

 private:
  void tell(int message);

  int fd_ = -1;
  int pid_ = -1;
};

}  // namespace gradsync
