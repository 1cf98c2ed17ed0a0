#include "gradsync/testbed/diagnosis/evidence.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "gradsync/comm/signature.hpp"
#include "gradsync/core/rank_list.hpp"
#include "gradsync/testbed/diagnosis/sentences.hpp"

namespace gradsync::diagnosis {
namespace {

using Key = std::pair<std::string, std::int64_t>;  // group, sequence

/// Orders events by step, then by time. Steps come first, because the clocks of several machines
/// may differ.
using Moment = std::pair<std::int64_t, Seconds>;

Moment moment_of(const CollectiveRecord& record) {
  return {record.label.step, record.issued};
}

/// The earliest key at which some rank's record differs from the first rank's.
std::optional<Key> first_differing_key(const Digest& digest) {
  std::map<Key, const CollectiveRecord*> reference;
  std::optional<Key> first;
  Moment when;
  for (const RankView& view : digest.ranks) {
    for (const CollectiveRecord* record : view.collectives) {
      const auto [entry, added] = reference.try_emplace({record->group, record->sequence}, record);
      if (added || same_signature(*entry->second, *record)) continue;
      const Moment moment = std::min(moment_of(*entry->second), moment_of(*record));
      if (first && when <= moment) continue;
      first = entry->first;
      when = moment;
    }
  }
  return first;
}

std::size_t silent_of(const Digest& digest, const std::vector<int>& members) {
  const std::vector<int> absent = digest.absent();
  return static_cast<std::size_t>(std::ranges::count_if(
      members, [&](int rank) { return std::ranges::find(absent, rank) != absent.end(); }));
}

}  // namespace

Disagreement compare_ranks(const std::map<std::string, std::vector<int>>& ranks_by_what,
                           std::size_t silent) {
  Disagreement disagreement;
  disagreement.silent = silent;
  for (const auto& [what, ranks] : ranks_by_what) disagreement.groups.push_back({ranks, what});
  // Order equally large groups by their first rank, so that the order is deterministic.
  std::ranges::sort(disagreement.groups, [](const RankGroup& a, const RankGroup& b) {
    return std::make_tuple(b.ranks.size(), a.ranks.front()) <
           std::make_tuple(a.ranks.size(), b.ranks.front());
  });
  return disagreement;
}

bool Disagreement::undecided() const {
  std::size_t all = silent;
  for (const RankGroup& group : groups) all += group.ranks.size();
  return silent > 0 && groups[0].ranks.size() * 2 <= all;
}

std::vector<int> Disagreement::odd_ranks() const {
  std::vector<int> ranks;
  if (undecided()) return ranks;
  for (std::size_t i = tie() ? 0 : 1; i < groups.size(); ++i) {
    ranks.insert(ranks.end(), groups[i].ranks.begin(), groups[i].ranks.end());
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::string Disagreement::describe(const char* one, const char* many) const {
  std::string text;
  for (const RankGroup& group : groups) {
    if (!text.empty()) text += "; ";
    text +=
        fmt::format("{} {} {}", rank_list(group.ranks), verb(group.ranks, one, many), group.what);
  }
  return text;
}

std::optional<Mismatch> first_mismatch(const Digest& digest) {
  const auto key = first_differing_key(digest);
  if (!key) return std::nullopt;
  std::map<std::string, std::vector<int>> ranks_by_signature;
  std::map<std::string, const CollectiveRecord*> records;
  for (const RankView& view : digest.ranks) {
    for (const CollectiveRecord* record : view.collectives) {
      if (record->sequence != key->second || record->group != key->first) continue;
      const std::string text = signature(*record);
      ranks_by_signature[text].push_back(view.rank);
      records.try_emplace(text, record);
    }
  }
  Mismatch mismatch;
  static_cast<Disagreement&>(mismatch) =
      compare_ranks(ranks_by_signature, silent_of(digest, digest.members.at(key->first)));
  mismatch.record = records.at(mismatch.groups[0].what);
  mismatch.odd = records.at(mismatch.groups[1].what);
  return mismatch;
}

std::optional<SiteDifference> first_site_difference(const Digest& digest) {
  // Skip DDP's own collectives: they come from one loop, and in a join, ranks without inputs
  // rightly issue them from another place.
  std::map<Key, std::map<std::string, std::vector<int>>> ranks_by_site;
  std::map<Key, const CollectiveRecord*> first;
  for (const RankView& view : digest.ranks) {
    for (const CollectiveRecord* record : view.collectives) {
      if (is_of_ddp(*record) || record->label.site.empty()) continue;
      const Key key{record->group, record->sequence};
      ranks_by_site[key][record->label.site].push_back(view.rank);
      first.try_emplace(key, record);
    }
  }
  const CollectiveRecord* found = nullptr;
  for (const auto& [key, record] : first) {
    const bool differs = ranks_by_site[key].size() > 1;
    if (differs && (found == nullptr || record->issued < found->issued)) found = record;
  }
  if (found == nullptr) return std::nullopt;
  SiteDifference difference;
  difference.record = found;
  static_cast<Disagreement&>(difference) =
      compare_ranks(ranks_by_site[{found->group, found->sequence}],
                    silent_of(digest, digest.members.at(found->group)));
  return difference;
}

std::vector<StepOfRanks> steps_of_ranks(const Digest& digest) {
  const bool joins = digest.scenario->ddp.join.enable;
  // In a join, compare only ranks that took equally many steps before the epoch, because their
  // optimizer states have equally many updates.
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, StepOfRanks> steps;
  for (const RankView& view : digest.ranks) {
    if (view.report == nullptr) continue;
    std::map<std::int64_t, std::int64_t> taken;  // by epoch
    for (const StepRecord& step : view.report->steps) {
      const std::int64_t nth = taken[step.epoch]++;
      const auto place = joins ? std::tuple(step.epoch, step.step - nth, nth)
                               : std::tuple(std::int64_t{0}, std::int64_t{0}, step.step);
      steps[place].emplace_back(view.rank, &step);
    }
  }
  std::vector<StepOfRanks> list;
  for (auto& [place, of_ranks] : steps) list.push_back(std::move(of_ranks));
  return list;
}

std::optional<HashDifference> first_hash_difference(const Digest& digest) {
  for (StepOfRanks& records : steps_of_ranks(digest)) {
    std::map<std::string, std::vector<int>> ranks_by_hash;
    for (const auto& [rank, step] : records) {
      if (!step->parameter_hash.empty()) ranks_by_hash[step->parameter_hash].push_back(rank);
    }
    if (ranks_by_hash.size() < 2) continue;
    const bool lost = digest.gaps.steps || !digest.absent().empty();
    HashDifference difference;
    static_cast<Disagreement&>(difference) =
        compare_ranks(ranks_by_hash, lost ? digest.ranks.size() - records.size() : 0);
    difference.step = records.front().second->step;
    difference.epoch = records.front().second->epoch;
    difference.records = std::move(records);
    return difference;
  }
  return std::nullopt;
}

std::vector<Frontier> find_frontiers(const Digest& digest) {
  std::map<Key, Frontier> frontiers;
  for (const RankView& view : digest.ranks) {
    if (view.standing != Standing::kBlocked || view.pending == nullptr) continue;
    Frontier& frontier = frontiers[{view.pending->group, view.pending->sequence}];
    if (frontier.record == nullptr) frontier.record = view.pending;
    frontier.waiting.push_back(view.rank);
  }
  std::vector<Frontier> list;
  for (auto& [key, frontier] : frontiers) {
    const auto members = digest.members.find(key.first);
    if (members != digest.members.end()) {
      std::ranges::set_difference(members->second, frontier.waiting,
                                  std::back_inserter(frontier.missing));
    }
    list.push_back(std::move(frontier));
  }
  std::ranges::stable_sort(list, {}, [](const Frontier& f) { return moment_of(*f.record); });
  return list;
}

std::optional<Frontier> find_frontier(const Digest& digest) {
  std::vector<Frontier> frontiers = find_frontiers(digest);
  if (frontiers.empty()) return std::nullopt;
  return std::move(frontiers.front());
}

void place(Diagnosis& diagnosis, const CollectiveRecord& record) {
  diagnosis.collective = describe_collective(record);
  if (record.label.step >= 0) diagnosis.step = record.label.step;
  if (record.label.bucket >= 0) diagnosis.bucket = record.label.bucket;
}

std::string describe(const Frontier& frontier) {
  return fmt::format("{} {} in {}{}", rank_list(frontier.waiting),
                     verb(frontier.waiting, "waits", "wait"), describe_collective(*frontier.record),
                     with_parameters(*frontier.record));
}

}  // namespace gradsync::diagnosis
