#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gradsync/testbed/diagnosis/diagnosis.hpp"
#include "gradsync/testbed/diagnosis/digest.hpp"

namespace gradsync::diagnosis {

/// What more than one rule asks of a digest.

/// Ranks that agree on something.
struct RankGroup {
  std::vector<int> ranks;  ///< ascending
  std::string what;        ///< on what, as text
};

/// The first place at which ranks do not agree. The largest group comes first: the majority is
/// taken to be right. Where two groups are equally large nobody is.
struct Disagreement {
  std::vector<RankGroup> groups;  ///< two or more, by size, then by first rank
  std::size_t silent = 0;         ///< ranks that belong here and whose evidence is missing

  bool tie() const { return groups[0].ranks.size() == groups[1].ranks.size(); }
  /// What is missing could turn the majority.
  bool undecided() const;
  /// Ranks outside the largest group; all of them in a tie, none where nothing is decided.
  std::vector<int> odd_ranks() const;
  /// "ranks 0, 2-3 MANY this; rank 1 ONE that", with the verb for one rank and for many.
  std::string describe(const char* one, const char* many) const;
};

/// Ranks sorted by what they say, with `silent` of others that say nothing.
Disagreement compare_ranks(const std::map<std::string, std::vector<int>>& ranks_by_what,
                           std::size_t silent);

/// The first collective (by step, then by time) that is not the same on all ranks that have entered
/// it: another operation, size, data type or label.
struct Mismatch : Disagreement {
  const CollectiveRecord* record = nullptr;  ///< as the first group issued it
  const CollectiveRecord* odd = nullptr;     ///< as the second group did
};
std::optional<Mismatch> first_mismatch(const Digest& digest);

/// The first collective of the program's own that all ranks issued alike, but not at the same call
/// site. `record` is the first group's.
struct SiteDifference : Disagreement {
  const CollectiveRecord* record = nullptr;
};
std::optional<SiteDifference> first_site_difference(const Digest& digest);

/// The records of one step, over the ranks that have it.
using StepOfRanks = std::vector<std::pair<int, const StepRecord*>>;

/// The first step after which ranks do not have the same parameters.
struct HashDifference : Disagreement {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  StepOfRanks records;
};
std::optional<HashDifference> first_hash_difference(const Digest& digest);

/// The steps of the run in their order, each with the ranks that took it. Ranks count their steps
/// alike but for a join, where one with more data is ahead in the next epoch: there a step is the
/// nth of its epoch, and only ranks that took equally many steps before that epoch share it.
std::vector<StepOfRanks> steps_of_ranks(const Digest& digest);

/// A collective at which a stopped run stands: who waits in it, and who does not come.
struct Frontier {
  const CollectiveRecord* record = nullptr;
  std::vector<int> waiting;
  std::vector<int> missing;  ///< the other members of its group
};
/// All of them, the earliest first (by step, then by time).
std::vector<Frontier> find_frontiers(const Digest& digest);
/// The first of them.
std::optional<Frontier> find_frontier(const Digest& digest);

/// Collective, step and bucket of a diagnosis.
void place(Diagnosis& diagnosis, const CollectiveRecord& record);

/// "ranks 0-1 wait in allreduce #5 ... with parameters ..."
std::string describe(const Frontier& frontier);

}  // namespace gradsync::diagnosis
