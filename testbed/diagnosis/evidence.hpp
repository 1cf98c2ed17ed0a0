#pragma once

#include <optional>
#include <string>
#include <vector>

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

  bool tie() const { return groups[0].ranks.size() == groups[1].ranks.size(); }
  /// Ranks outside the largest group; all of them in a tie.
  std::vector<int> odd_ranks() const;
  /// "ranks 0, 2-3 MANY this; rank 1 ONE that", with the verb for one rank and for many.
  std::string describe(const char* one, const char* many) const;
};

/// The first collective (by group and sequence number) that is not the same on all ranks that have
/// entered it: another operation, size, data type or label.
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

/// The first step after which ranks do not have the same parameters.
struct HashDifference : Disagreement {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
};
std::optional<HashDifference> first_hash_difference(const Digest& digest);

/// The collective at which a stopped run stands: the lowest that a rank waits in, and who waits
/// there.
struct Frontier {
  const CollectiveRecord* record = nullptr;
  std::vector<int> waiting;
  std::vector<int> missing;  ///< everybody else
};
std::optional<Frontier> find_frontier(const Digest& digest);

/// "ranks 0-1 wait in allreduce #5 ... with parameters ..."
std::string describe(const Frontier& frontier);

}  // namespace gradsync::diagnosis
