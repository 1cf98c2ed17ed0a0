// What a launch says of how it ended.
#include <algorithm>

#include <fmt/format.h>

#include "gradsync/backends/launch/child_process.hpp"
#include "gradsync/backends/launch/launcher.hpp"

namespace gradsync {

std::string RankExit::describe() const {
  return signal != 0 ? describe_signal(signal) : fmt::format("exit status {}", exit_code);
}

int LaunchResult::exit_status() const noexcept {
  constexpr int kSignalBase = 128;      // the shells' convention
  constexpr int kDeadlineStatus = 124;  // as in timeout(1)
  if (forwarded_signal != 0) return kSignalBase + forwarded_signal;
  if (first_failure) {
    return first_failure->signal != 0 ? kSignalBase + first_failure->signal
                                      : first_failure->exit_code;
  }
  if (deadline_ended) return kDeadlineStatus;
  return has_stuck_ranks() ? 1 : 0;
}

bool LaunchResult::has_stuck_ranks() const noexcept {
  return !told_failure.empty() && std::any_of(ranks.begin(), ranks.end(), [](const RankExit& rank) {
    return rank.ended_by_launcher;
  });
}

std::string LaunchResult::describe() const {
  if (first_failure) {
    return fmt::format("rank {} (local rank {}, pid {}) failed first, after {:.2f} s: {}",
                       first_failure->rank, first_failure->local_rank, first_failure->pid,
                       first_failure->time.count(), first_failure->describe());
  }
  if (forwarded_signal != 0) return "ended by " + describe_signal(forwarded_signal);
  if (deadline_ended) return "ended at the deadline";
  if (has_stuck_ranks()) {
    return fmt::format("ranks that did not end after a failure were ended: {}", told_failure);
  }
  return "all ranks ended with status 0";
}

}  // namespace gradsync
