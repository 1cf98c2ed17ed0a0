#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gradsync/testbed/diagnosis/diagnosis.hpp"
#include "gradsync/testbed/diagnosis/digest.hpp"

namespace gradsync::diagnosis {

/// What the members of each process group issued, in order: where the ranks' sequences part, who
/// has not come to a collective, and what a rank would have had to issue next.
class Sequences {
 public:
  /// Points into the reports of `digest`.
  explicit Sequences(const Digest& digest);

  /// The earliest point, by time of issue, at which members of a group did not issue the same
  /// collective: three rows before it, and up to three after it for each set of ranks that went on
  /// alike. Nothing if no sequences part.
  std::optional<Divergence> find_divergence() const;

  /// Members of the group of `record` that have not issued its sequence number, ascending. Those
  /// whose records are missing count as not having come.
  std::vector<int> missing_from(const CollectiveRecord& record) const;

  /// What other ranks issued where `rank` stopped, in the group in which that was earliest; null
  /// if nobody is ahead of it.
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
  /// The first sequence number at which not all members have the same; nothing if there is none.
  static std::optional<std::int64_t> first_parting(const Group& group);
  Divergence describe(const Group& group, std::int64_t sequence) const;
  const Group* group_of(const CollectiveRecord& record) const;

  const Digest& digest_;
  std::vector<Group> groups_;
};

}  // namespace gradsync::diagnosis
