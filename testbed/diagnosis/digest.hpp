#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gradsync/testbed/record/rank_report.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync::diagnosis {

/// How a rank stands at the end, without regard to the world: in the simulator a deadlock leaves it
/// inside a collective, on a real network the wait's deadline ends it with an error there; both are
/// kBlocked.
enum class Standing {
  kFinished,  ///< out of steps; perhaps waiting for the others in shutdown
  kBlocked,   ///< inside a collective that others did not complete
  kFailed,    ///< an error of its own
  kDied,      ///< its process went without a word
  kRunning,   ///< outside any collective
  kUnknown,   ///< no report
};
const char* to_string(Standing standing) noexcept;

/// One rank's report, read.
struct RankView {
  int rank = 0;
  const RankReport* report = nullptr;  ///< null where there is none
  Standing standing = Standing::kUnknown;
  /// All that is known of its collectives, by time of issue; points into the report.
  std::vector<const CollectiveRecord*> collectives;
  const CollectiveRecord* last_completed = nullptr;
  /// The first one that did not complete; set for kBlocked, and for others that left one behind.
  const CollectiveRecord* pending = nullptr;
  bool timed_out = false;  ///< blocked, and its own deadline ended it

  std::int64_t steps_completed() const { return report != nullptr ? report->steps_completed : 0; }
};

/// What went wrong first, by time.
enum class FirstFailure { kNone, kTimeout, kError, kDeath };

/// The reports of a run, sorted out for the rules. Points into `reports` and `scenario`, which must
/// outlive it.
struct Digest {
  const Scenario* scenario = nullptr;
  std::vector<RankView> ranks;  ///< by rank, all of the world
  FirstFailure first_failure = FirstFailure::kNone;
  int first_failed_rank = -1;      ///< -1 for kNone
  std::vector<int> foreign_ranks;  ///< of reports that cannot be of this run's ranks; left out

  std::vector<int> with(Standing standing) const;
  bool all_finished() const;
};

Digest make_digest(const std::vector<RankReport>& reports, const Scenario& scenario);

}  // namespace gradsync::diagnosis
