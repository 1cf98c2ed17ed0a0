#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gradsync/testbed/diagnosis/diagnosis.hpp"
#include "gradsync/testbed/diagnosis/digest.hpp"

namespace gradsync::diagnosis {

/// The sequence of collectives issued by each member of each process group: where the ranks'
/// sequences diverge, who has not joined a collective, and what a rank should have issued next.
class Sequences {
 public:
  /// Points into the reports of `digest`.
  explicit Sequences(const Digest& digest);

  /// The earliest point, by issue time, at which members of a group did not issue the same
  /// collective: three rows before it, and up to three after it per set of ranks that continued
  /// alike. Nullopt if no sequences diverge.
  std::optional<Divergence> find_divergence() const;

  /// Members of `record`'s group that have not issued its sequence number, ascending. Includes
  /// members whose records are missing.
  std::vector<int> missing_from(const CollectiveRecord& record) const;

  /// What other ranks issued at the point where `rank` stopped, in the group where that was
  /// earliest; null if no rank is ahead of it.
  const CollectiveRecord* next_expected(int rank) const;

 private:
  struct Member {
    int rank = 0;
    std::vector<const CollectiveRecord*> issued;  // ascending sequence numbers
  };
  struct Group {
    std::string name;
    std::vector<Member> members;  // by rank
  };

  static const CollectiveRecord* find(const Member& member, std::int64_t sequence);
  /// The first sequence number at which the members differ; nullopt if there is none.
  static std::optional<std::int64_t> first_parting(const Group& group);
  Divergence describe(const Group& group, std::int64_t sequence) const;
  const Group* group_of(const CollectiveRecord& record) const;

  const Digest& digest_;
  std::vector<Group> groups_;
};

}  // namespace gradsync::diagnosis
