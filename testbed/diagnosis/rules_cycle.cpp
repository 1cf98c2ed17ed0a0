#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "gradsync/core/rank_list.hpp"
#include "gradsync/testbed/diagnosis/rules.hpp"
#include "gradsync/testbed/diagnosis/sentences.hpp"

namespace gradsync::diagnosis {
namespace {

/// The ranks that have ever issued something in a group: its members, as far as the records say.
std::map<std::string, std::vector<int>> members_by_group(const Digest& digest) {
  std::map<std::string, std::vector<int>> members;
  for (const RankView& view : digest.ranks) {
    for (const CollectiveRecord* record : view.collectives) {
      std::vector<int>& ranks = members[record->group];
      if (ranks.empty() || ranks.back() != view.rank) ranks.push_back(view.rank);
    }
  }
  return members;
}

bool waits_in(const RankView& view, const std::string& group) {
  return view.standing == Standing::kBlocked && view.pending != nullptr &&
         view.pending->group == group;
}

/// The members of the group in which `rank` waits that are not in that collective, but in another.
std::vector<int> waited_for(const Digest& digest,
                            const std::map<std::string, std::vector<int>>& members, int rank) {
  const CollectiveRecord& in = *digest.ranks[static_cast<std::size_t>(rank)].pending;
  std::vector<int> others;
  for (const int other : members.at(in.group)) {
    const RankView& view = digest.ranks[static_cast<std::size_t>(other)];
    if (view.standing == Standing::kBlocked && view.pending != nullptr &&
        view.pending->group != in.group) {
      others.push_back(other);
    }
  }
  return others;
}

/// A shortest way from a rank over those that it waits for back to itself; empty where there is
/// none.
std::vector<int> find_ring(const Digest& digest,
                           const std::map<std::string, std::vector<int>>& members, int start) {
  std::map<int, int> came_from{{start, -1}};
  std::vector<int> queue{start};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const int next : waited_for(digest, members, queue[i])) {
      if (next == start) {
        std::vector<int> ring;
        for (int rank = queue[i]; rank != -1; rank = came_from.at(rank)) ring.push_back(rank);
        std::reverse(ring.begin(), ring.end());
        return ring;
      }
      if (came_from.try_emplace(next, queue[i]).second) queue.push_back(next);
    }
  }
  return {};
}

/// "g0 then g1": the order in which a rank comes to the groups of the ring.
std::string order_of(const RankView& view, const std::vector<std::string>& groups) {
  // What it waits in comes first; what it has not entered, later.
  std::string text = view.pending->group;
  for (const std::string& group : groups) {
    if (group != view.pending->group) text += " then " + group;
  }
  return text;
}

}  // namespace

std::optional<Diagnosis> find_cycle(const Digest& digest) {
  const auto members = members_by_group(digest);
  if (members.size() < 2) return std::nullopt;
  std::vector<int> ring;
  for (const RankView& view : digest.ranks) {
    if (view.standing != Standing::kBlocked || view.pending == nullptr) continue;
    ring = find_ring(digest, members, view.rank);
    if (!ring.empty()) break;
  }
  if (ring.empty()) return std::nullopt;

  Diagnosis diagnosis;
  diagnosis.verdict = "deadlock";
  diagnosis.kind = "group_cycle";
  diagnosis.catalog = "K17";
  std::vector<std::string> groups;
  for (const int rank : ring) {
    const std::string& group = digest.ranks[static_cast<std::size_t>(rank)].pending->group;
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const RankView& view = digest.ranks[static_cast<std::size_t>(ring[i])];
    diagnosis.chain.push_back(fmt::format("rank {} waits in {} of {} for rank {}", ring[i],
                                          describe_collective(*view.pending), view.pending->group,
                                          ring[(i + 1) % ring.size()]));
  }
  // All that wait in one of these groups take part in the circle, not only the shortest way round.
  for (const RankView& view : digest.ranks) {
    if (std::any_of(groups.begin(), groups.end(),
                    [&](const std::string& group) { return waits_in(view, group); })) {
      diagnosis.ranks.push_back(view.rank);
    }
  }
  const RankView& first = digest.ranks[static_cast<std::size_t>(ring.front())];
  const RankView& last = digest.ranks[static_cast<std::size_t>(ring.back())];
  diagnosis.collective = describe_collective(*first.pending);
  if (first.pending->label.step >= 0) diagnosis.step = first.pending->label.step;
  diagnosis.because = fmt::format(
      "ranks wait for each other in a circle over the groups {}: rank {} comes to {}, rank {} to "
      "{}",
      fmt::join(groups, " and "), first.rank, order_of(first, groups), last.rank,
      order_of(last, groups));
  diagnosis.first_cause = fmt::format("the groups are not used in one order on all ranks");
  diagnosis.first_symptom =
      fmt::format("{} {} in {} of {}", rank_list(std::vector{first.rank}), "waits",
                  describe_collective(*first.pending), first.pending->group);
  diagnosis.fix =
      "issue the collectives of all groups in one order on every rank, or wait for none before the "
      "other is issued";
  return diagnosis;
}

}  // namespace gradsync::diagnosis
