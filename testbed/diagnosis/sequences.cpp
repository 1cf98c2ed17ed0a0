#include "gradsync/testbed/diagnosis/sequences.hpp"

#include <algorithm>
#include <map>

#include "gradsync/comm/signature.hpp"
#include "gradsync/testbed/diagnosis/sentences.hpp"

namespace gradsync::diagnosis {
namespace {

constexpr std::int64_t kWindow = 3;  // collectives before and after

bool by_sequence(const CollectiveRecord* a, const CollectiveRecord* b) {
  return a->sequence < b->sequence;
}

/// Every rank of a run is in this group, even if it has not issued anything yet.
bool has_all_ranks(const std::string& group) {
  return group == kDefaultGroupName;
}

/// False if the rank's process vanished: what it issued is unknown.
bool left_records(const RankView& view) {
  return view.report != nullptr && (view.standing != Standing::kDied || !view.collectives.empty());
}

}  // namespace

Sequences::Sequences(const Digest& digest) : digest_(digest) {
  std::map<std::string, std::map<int, Member>> by_group;
  for (const RankView& view : digest.ranks) {
    if (!left_records(view)) continue;
    by_group[kDefaultGroupName][view.rank];
    for (const CollectiveRecord* record : view.collectives) {
      by_group[record->group][view.rank].issued.push_back(record);
    }
  }
  for (auto& [name, members] : by_group) {
    if (!parse_channel(name)) continue;
    for (const int rank : digest.members.at(name)) {
      if (left_records(digest.of(rank))) members[rank];
    }
  }
  for (auto& [name, members] : by_group) {
    Group& group = groups_.emplace_back();
    group.name = name;
    for (auto& [rank, member] : members) {
      member.rank = rank;
      std::ranges::stable_sort(member.issued, by_sequence);
      group.members.push_back(std::move(member));
    }
  }
}

const CollectiveRecord* Sequences::find(const Member& member, std::int64_t sequence) {
  const auto at =
      std::ranges::lower_bound(member.issued, sequence, {}, &CollectiveRecord::sequence);
  return at == member.issued.end() || (*at)->sequence != sequence ? nullptr : *at;
}

std::optional<std::int64_t> Sequences::first_parting(const Group& group) {
  // Rings drop the oldest records: the range common to all starts at the latest first record.
  std::int64_t first = 0;
  std::vector<std::int64_t> sequences;
  for (const Member& member : group.members) {
    if (!member.issued.empty()) first = std::max(first, member.issued.front()->sequence);
    for (const CollectiveRecord* record : member.issued) sequences.push_back(record->sequence);
  }
  std::ranges::sort(sequences);
  sequences.erase(std::unique(sequences.begin(), sequences.end()), sequences.end());
  for (const std::int64_t sequence : sequences) {
    if (sequence < first) continue;
    const CollectiveRecord* reference = nullptr;
    bool absent = false, differs = false;
    for (const Member& member : group.members) {
      const CollectiveRecord* record = find(member, sequence);
      if (record == nullptr) {
        absent = true;
      } else if (reference == nullptr) {
        reference = record;
      } else {
        differs = differs || !same_signature(*reference, *record);
      }
    }
    if (reference != nullptr && (absent || differs)) return sequence;
  }
  return std::nullopt;
}

std::optional<Divergence> Sequences::find_divergence() const {
  const Group* earliest = nullptr;
  std::int64_t where = 0;
  Seconds when{0};
  for (const Group& group : groups_) {
    const auto sequence = first_parting(group);
    if (!sequence) continue;
    for (const Member& member : group.members) {
      const CollectiveRecord* record = find(member, *sequence);
      if (record == nullptr || (earliest != nullptr && record->issued >= when)) continue;
      earliest = &group;
      where = *sequence;
      when = record->issued;
    }
  }
  if (earliest == nullptr) return std::nullopt;
  return describe(*earliest, where);
}

Divergence Sequences::describe(const Group& group, std::int64_t sequence) const {
  Divergence divergence;
  divergence.group = group.name;
  std::vector<int> everyone;
  for (const Member& member : group.members) everyone.push_back(member.rank);
  for (std::int64_t before = sequence - kWindow; before < sequence; ++before) {
    for (const Member& member : group.members) {
      const CollectiveRecord* record = find(member, before);
      if (record == nullptr) continue;
      divergence.rows.push_back({everyone, before, describe_collective(*record)});
      divergence.last_agreed = before;
      break;
    }
  }

  using Rows = std::vector<std::pair<std::optional<std::int64_t>, std::string>>;
  std::vector<std::pair<Rows, std::vector<int>>> tails;  // by first rank
  for (const Member& member : group.members) {
    Rows rows;
    for (std::int64_t after = sequence; after < sequence + kWindow; ++after) {
      const CollectiveRecord* record = find(member, after);
      if (record == nullptr) continue;
      rows.emplace_back(after, describe_collective(*record) + own_site_of(*record));
    }
    const Standing standing = digest_.ranks[static_cast<std::size_t>(member.rank)].standing;
    if (std::ssize(rows) < kWindow && (rows.empty() || standing != Standing::kBlocked)) {
      const char* lead = standing == Standing::kRunning ? "nothing yet: " : "nothing more: ";
      rows.emplace_back(std::nullopt, std::string(lead) + to_string(standing));
    }
    const auto same = std::ranges::find(tails, rows, &std::pair<Rows, std::vector<int>>::first);
    if (same == tails.end()) {
      tails.emplace_back(std::move(rows), std::vector<int>{member.rank});
    } else {
      same->second.push_back(member.rank);
    }
  }
  for (const auto& [rows, ranks] : tails) {
    for (const auto& [number, text] : rows) divergence.rows.push_back({ranks, number, text});
  }
  return divergence;
}

const Sequences::Group* Sequences::group_of(const CollectiveRecord& record) const {
  const auto at = std::ranges::find(groups_, record.group, &Group::name);
  return at == groups_.end() ? nullptr : &*at;
}

std::vector<int> Sequences::missing_from(const CollectiveRecord& record) const {
  std::vector<int> missing;
  const Group* group = group_of(record);
  if (group == nullptr) return missing;
  for (const Member& member : group->members) {
    if (find(member, record.sequence) == nullptr) missing.push_back(member.rank);
  }
  if (has_all_ranks(record.group)) {
    for (const RankView& view : digest_.ranks) {
      if (!left_records(view)) missing.push_back(view.rank);
    }
    std::ranges::sort(missing);
  } else if (parse_channel(record.group)) {
    for (const int rank : digest_.members.at(record.group)) {
      if (!left_records(digest_.of(rank))) missing.push_back(rank);
    }
    std::ranges::sort(missing);
  }
  return missing;
}

const CollectiveRecord* Sequences::next_expected(int rank) const {
  const CollectiveRecord* earliest = nullptr;
  for (const Group& group : groups_) {
    const auto own = std::ranges::find(group.members, rank, &Member::rank);
    if (own == group.members.end()) continue;
    const std::int64_t next = own->issued.empty() ? 0 : own->issued.back()->sequence + 1;
    for (const Member& member : group.members) {
      const CollectiveRecord* record = find(member, next);
      if (record == nullptr || (earliest != nullptr && record->issued >= earliest->issued))
        continue;
      earliest = record;
    }
  }
  return earliest;
}

}  // namespace gradsync::diagnosis
