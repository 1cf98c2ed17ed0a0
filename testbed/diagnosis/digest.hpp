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

/// A rank's final state, independent of the backend: a deadlock leaves a rank inside a collective
/// in the simulator, and on a real network the timeout ends it there with an error; both are
/// kBlocked.
enum class Standing {
  kFinished,  ///< completed all its steps; possibly waiting in shutdown
  kBlocked,   ///< inside a collective that others did not complete
  kFailed,    ///< failed with its own error
  kDied,      ///< its process ended without reporting
  kRunning,   ///< outside any collective
  kUnknown,   ///< no report
};
const char* to_string(Standing standing) noexcept;

/// One rank's report, prepared for the rules.
struct RankView {
  int rank = 0;
  const RankReport* report = nullptr;  ///< null if there is none
  Standing standing = Standing::kUnknown;
  /// All its known collectives, by issue time; points into the report.
  std::vector<const CollectiveRecord*> collectives;
  const CollectiveRecord* last_completed = nullptr;
  /// The first incomplete collective; set for kBlocked, and for other ranks that left one.
  const CollectiveRecord* pending = nullptr;
  bool timed_out = false;  ///< blocked, and timed out itself
  bool given = false;      ///< there is a report, even if it is empty
  bool testified = false;  ///< `report` was derived from other ranks' errors

  std::int64_t steps_completed() const { return report != nullptr ? report->steps_completed : 0; }
};

/// The earliest failure.
enum class FirstFailure { kNone, kTimeout, kError, kDeath };

/// The reports of a run, indexed for the rules. Points into `reports` and `scenario`, which must
/// outlive it.
struct Digest {
  const Scenario* scenario = nullptr;
  EvidenceGaps gaps;
  std::vector<RankView> ranks;  ///< all ranks, by rank
  FirstFailure first_failure = FirstFailure::kNone;
  int first_failed_rank = -1;      ///< -1 for kNone
  std::vector<int> foreign_ranks;  ///< of reports that belong to another run; ignored
  /// The known members of each process group; all ranks for the default group.
  std::map<std::string, std::vector<int>> members;
  /// For each process group, the first sequence number covered by every rank's records; some rank's
  /// ring has overwritten what it issued before.
  std::map<std::string, std::int64_t> recorded_since;
  std::list<RankReport> testimonies;  ///< the reports of `testified` ranks

  const RankView& of(int rank) const { return ranks[static_cast<std::size_t>(rank)]; }
  std::vector<int> with(Standing standing) const;
  bool all_finished() const;
  /// Whether there is a report, and every rank with a report has finished.
  bool all_known_finished() const;
  /// Ranks without any evidence: nothing can be inferred from their silence.
  std::vector<int> absent() const;
  /// Whether some rank's ring has overwritten the collective.
  bool is_forgotten(const CollectiveRecord& record) const;
  /// Whether any ring has overwritten records.
  bool rings_wrapped() const;
};

Digest make_digest(const std::vector<RankReport>& reports, const Scenario& scenario,
                   EvidenceGaps gaps = {});

}  // namespace gradsync::diagnosis
