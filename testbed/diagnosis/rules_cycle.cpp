#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "gradsync/core/rank_list.hpp"
#include "gradsync/testbed/diagnosis/habits.hpp"
#include "gradsync/testbed/diagnosis/rules.hpp"
#include "gradsync/testbed/diagnosis/sentences.hpp"

namespace gradsync::diagnosis {
namespace {

bool waits_in(const RankView& view, const std::string& group) {
  return view.standing == Standing::kBlocked && view.pending != nullptr &&
         view.pending->group == group;
}

/// The members of the group in which `rank` waits that are in another collective instead.
std::vector<int> waited_for(const Digest& digest, int rank) {
  const CollectiveRecord& in = *digest.ranks[static_cast<std::size_t>(rank)].pending;
  std::vector<int> others;
  for (const int other : digest.members.at(in.group)) {
    const RankView& view = digest.ranks[static_cast<std::size_t>(other)];
    if (view.standing == Standing::kBlocked && view.pending != nullptr &&
        view.pending->group != in.group) {
      others.push_back(other);
    }
  }
  return others;
}

/// A shortest cycle in the wait-for graph through `start`; empty if there is none.
std::vector<int> find_ring(const Digest& digest, int start) {
  std::map<int, int> came_from{{start, -1}};
  std::vector<int> queue{start};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const int next : waited_for(digest, queue[i])) {
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

/// "g0 then g1": the order in which a rank enters the groups of the cycle.
std::string order_of(const RankView& view, const std::vector<std::string>& groups) {
  // The group it waits in comes first, those it has not entered later.
  std::string text = view.pending->group;
  for (const std::string& group : groups) {
    if (group != view.pending->group) text += " then " + group;
  }
  return text;
}

/// The first cycle, by its first rank; empty if there is none, or if all may be waiting for a rank
/// without evidence.
std::vector<int> first_ring(const Digest& digest) {
  if (digest.members.size() < 2 || !digest.absent().empty()) return {};
  for (const RankView& view : digest.ranks) {
    if (view.standing != Standing::kBlocked || view.pending == nullptr) continue;
    std::vector<int> ring = find_ring(digest, view.rank);
    if (!ring.empty()) return ring;
  }
  return {};
}

}  // namespace

/// A cycle caused by one rank that deviated from all earlier steps: it issued a collective that is
/// in no earlier step, or skipped the one in which the others are.
std::optional<Diagnosis> find_detour(const Digest& digest) {
  const std::vector<int> ring = first_ring(digest);
  if (ring.empty()) return std::nullopt;
  std::vector<int> off, on;
  const CollectiveRecord* odd = nullptr;
  const CollectiveRecord* usual = nullptr;
  for (const RankView& view : digest.ranks) {
    if (view.standing != Standing::kBlocked || view.pending == nullptr) continue;
    const Habit habit = habit_of(digest, view.rank, *view.pending);
    if (habit == Habit::kUnknown) return std::nullopt;
    const bool unusual = habit == Habit::kUnusual;
    (unusual ? off : on).push_back(view.rank);
    const CollectiveRecord*& record = unusual ? odd : usual;
    if (record == nullptr) record = view.pending;
  }
  if (off.empty() || on.empty()) return std::nullopt;
  // If most ranks do something new, it is the others that leave it out.
  const bool most = off.size() > on.size();
  if (most) {
    std::swap(off, on);
    std::swap(odd, usual);
  }
  const bool extra = !most && !was_issued_before(digest, *odd);
  if (!extra && off.size() * 2 >= digest.ranks.size()) return std::nullopt;  // or two orders
  Diagnosis diagnosis = make_diagnosis(
      extra ? DiagnosisKind::kExtraCollective : DiagnosisKind::kMissingCollective, "deadlock");
  diagnosis.ranks = off;
  diagnosis.confidence = "likely";
  diagnosis.collective = describe_collective(*odd);
  if (odd->label.step >= 0) diagnosis.step = odd->label.step;
  if (usual->label.step >= 0) {
    diagnosis.step = std::min(diagnosis.step.value_or(usual->label.step), usual->label.step);
  }
  const std::string here =
      fmt::format("{} {} in {} of {}{}", rank_list(off), verb(off, "is", "are"),
                  describe_collective(*odd), odd->group, own_site_of(*odd));
  const std::string there = fmt::format("{} of {}", describe_collective(*usual), usual->group);
  diagnosis.because =
      extra ? fmt::format("{}, which no earlier step has, while {} {} in {} as in the steps before",
                          here, rank_list(on), verb(on, "is", "are"), there)
            : fmt::format("{} without having issued the collective in which {} {}: {}", here,
                          rank_list(on), verb(on, "waits", "wait"), there);
  diagnosis.first_cause = diagnosis.because;
  diagnosis.first_symptom =
      fmt::format("{} {} in {} of {}", rank_list(on), verb(on, "waits", "wait"),
                  describe_collective(*usual), usual->group);
  return diagnosis;
}

std::optional<Diagnosis> find_cycle(const Digest& digest) {
  const std::vector<int> ring = first_ring(digest);
  if (ring.empty()) return std::nullopt;

  Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kGroupCycle, "deadlock");
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
  // Every rank that waits in one of these groups is part of the cycle, not only the shortest one.
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
  return diagnosis;
}

}  // namespace gradsync::diagnosis
