#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "gradsync/testbed/record/evidence_gaps.hpp"
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
  bool given = false;      ///< there is a report, be it one in which nothing stands
  bool testified = false;  ///< `report` was made of what other ranks' errors say of this one

  std::int64_t steps_completed() const { return report != nullptr ? report->steps_completed : 0; }
};

/// What went wrong first, by time.
enum class FirstFailure { kNone, kTimeout, kError, kDeath };

/// The reports of a run, sorted out for the rules. Points into `reports` and `scenario`, which must
/// outlive it.
struct Digest {
  const Scenario* scenario = nullptr;
  EvidenceGaps gaps;
  std::vector<RankView> ranks;  ///< by rank, all ranks
  FirstFailure first_failure = FirstFailure::kNone;
  int first_failed_rank = -1;      ///< -1 for kNone
  std::vector<int> foreign_ranks;  ///< of reports that cannot be of this run's ranks; left out
  /// By process group, the ranks that are known to issue collectives in it; all in the default one.
  std::map<std::string, std::vector<int>> members;
  /// By process group, the first sequence number from which on every rank's records reach: before
  /// it somebody's ring has forgotten what the rank issued.
  std::map<std::string, std::int64_t> recorded_since;
  std::list<RankReport> testimonies;  ///< the reports of ranks that are `testified`

  const RankView& of(int rank) const { return ranks[static_cast<std::size_t>(rank)]; }
  std::vector<int> with(Standing standing) const;
  bool all_finished() const;
  /// Every rank of which there is a report has finished, and there is one.
  bool all_known_finished() const;
  /// Ranks of which nothing was given: what they did is not known, and their silence says nothing.
  std::vector<int> absent() const;
  /// A collective that somebody's ring has forgotten.
  bool is_forgotten(const CollectiveRecord& record) const;
  /// Some ring has forgotten something.
  bool rings_wrapped() const;
};

Digest make_digest(const std::vector<RankReport>& reports, const Scenario& scenario,
                   EvidenceGaps gaps = {});

}  // namespace gradsync::diagnosis
