#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gradsync/testbed/diagnosis/diagnosis.hpp"
#include "gradsync/testbed/diagnosis/digest.hpp"

namespace gradsync::diagnosis {

/// Queries on a digest that several rules use.

/// Ranks that agree on something.
struct RankGroup {
  std::vector<int> ranks;  ///< ascending
  std::string what;        ///< what they agree on, as text
};

/// The first point at which ranks disagree. The largest group comes first: the majority is assumed
/// to be right. If the two largest are equally large, there is no majority.
struct Disagreement {
  std::vector<RankGroup> groups;  ///< two or more, by size, then by first rank
  std::size_t silent = 0;         ///< ranks that belong here but have no evidence

  bool tie() const { return groups[0].ranks.size() == groups[1].ranks.size(); }
  /// Whether the missing evidence could change the majority.
  bool undecided() const;
  /// Ranks outside the largest group; all ranks in a tie, none if undecided.
  std::vector<int> odd_ranks() const;
  /// "ranks 0, 2-3 MANY this; rank 1 ONE that", with the verb for one rank and for many.
  std::string describe(const char* one, const char* many) const;
};

/// Groups ranks by what they report; `silent` others report nothing.
Disagreement compare_ranks(const std::map<std::string, std::vector<int>>& ranks_by_what,
                           std::size_t silent);

/// The first collective (by step, then by time) that differs between the ranks that have entered
/// it: operation, size, data type or label.
struct Mismatch : Disagreement {
  const CollectiveRecord* record = nullptr;  ///< as issued by the first group
  const CollectiveRecord* odd = nullptr;     ///< as issued by the second group
};
std::optional<Mismatch> first_mismatch(const Digest& digest);

/// The first collective of user code that all ranks issued alike, but from different call sites.
/// `record` is the first group's.
struct SiteDifference : Disagreement {
  const CollectiveRecord* record = nullptr;
};
std::optional<SiteDifference> first_site_difference(const Digest& digest);

/// The records of one step, over the ranks that have it.
using StepOfRanks = std::vector<std::pair<int, const StepRecord*>>;

/// The first step after which the ranks' parameters differ.
struct HashDifference : Disagreement {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  StepOfRanks records;
};
std::optional<HashDifference> first_hash_difference(const Digest& digest);

/// The steps of the run in order, each with the ranks that took it. Ranks number their steps alike,
/// except in a join, where a rank with more data is ahead in the next epoch: there, a step is the
/// nth of its epoch, and only ranks that took equally many steps before that epoch share it.
std::vector<StepOfRanks> steps_of_ranks(const Digest& digest);

/// A collective at which a stopped run is stuck: who waits in it, and who is missing.
struct Frontier {
  const CollectiveRecord* record = nullptr;
  std::vector<int> waiting;
  std::vector<int> missing;  ///< the other members of its group
};
/// All of them, earliest first (by step, then by time).
std::vector<Frontier> find_frontiers(const Digest& digest);
/// The earliest one.
std::optional<Frontier> find_frontier(const Digest& digest);

/// Sets collective, step and bucket of a diagnosis.
void place(Diagnosis& diagnosis, const CollectiveRecord& record);

/// "ranks 0-1 wait in allreduce #5 ... with parameters ..."
std::string describe(const Frontier& frontier);

}  // namespace gradsync::diagnosis
