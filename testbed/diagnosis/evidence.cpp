#include "gradsync/testbed/diagnosis/evidence.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "gradsync/comm/signature.hpp"
#include "gradsync/core/rank_list.hpp"
#include "gradsync/testbed/diagnosis/sentences.hpp"

namespace gradsync::diagnosis {
namespace {

/// Largest group first; equally large ones by their first rank, so that the order means nothing
/// more.
std::vector<RankGroup> by_size(const std::map<std::string, std::vector<int>>& ranks_by_what) {
  std::vector<RankGroup> groups;
  for (const auto& [what, ranks] : ranks_by_what) groups.push_back({ranks, what});
  std::sort(groups.begin(), groups.end(), [](const RankGroup& a, const RankGroup& b) {
    return std::make_tuple(b.ranks.size(), a.ranks.front()) <
           std::make_tuple(a.ranks.size(), b.ranks.front());
  });
  return groups;
}

using Key = std::pair<std::string, std::int64_t>;  // group, sequence

/// The lowest key at which some rank's record differs from the first rank's.
std::optional<Key> first_differing_key(const Digest& digest) {
  std::map<Key, const CollectiveRecord*> reference;
  std::optional<Key> first;
  for (const RankView& view : digest.ranks) {
    for (const CollectiveRecord* record : view.collectives) {
      const auto [entry, added] = reference.try_emplace({record->group, record->sequence}, record);
      if (added || same_signature(*entry->second, *record)) continue;
      if (!first || entry->first < *first) first = entry->first;
    }
  }
  return first;
}

}  // namespace

std::vector<int> Disagreement::odd_ranks() const {
  std::vector<int> ranks;
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
  mismatch.groups = by_size(ranks_by_signature);
  mismatch.record = records.at(mismatch.groups[0].what);
  mismatch.odd = records.at(mismatch.groups[1].what);
  return mismatch;
}

std::optional<SiteDifference> first_site_difference(const Digest& digest) {
  // What DDP issues for itself comes from one loop; in a join the ranks that are done issue it from
  // another place, and that is right.
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
  difference.groups = by_size(ranks_by_site[{found->group, found->sequence}]);
  return difference;
}

std::optional<HashDifference> first_hash_difference(const Digest& digest) {
  std::map<std::int64_t, std::map<std::string, std::vector<int>>> ranks_by_step_and_hash;
  std::map<std::int64_t, std::int64_t> epochs;
  for (const RankView& view : digest.ranks) {
    if (view.report == nullptr) continue;
    for (const StepRecord& step : view.report->steps) {
      if (step.parameter_hash.empty()) continue;
      ranks_by_step_and_hash[step.step][step.parameter_hash].push_back(view.rank);
      epochs.emplace(step.step, step.epoch);
    }
  }
  for (const auto& [step, ranks_by_hash] : ranks_by_step_and_hash) {
    if (ranks_by_hash.size() < 2) continue;
    HashDifference difference;
    difference.groups = by_size(ranks_by_hash);
    difference.step = step;
    difference.epoch = epochs.at(step);
    return difference;
  }
  return std::nullopt;
}

std::optional<Frontier> find_frontier(const Digest& digest) {
  Frontier frontier;
  for (const RankView& view : digest.ranks) {
    if (view.standing != Standing::kBlocked || view.pending == nullptr) continue;
    if (frontier.record == nullptr || view.pending->sequence < frontier.record->sequence) {
      frontier.record = view.pending;
    }
  }
  if (frontier.record == nullptr) return std::nullopt;
  for (const RankView& view : digest.ranks) {
    const bool waits = view.standing == Standing::kBlocked && view.pending != nullptr &&
                       view.pending->sequence == frontier.record->sequence &&
                       view.pending->group == frontier.record->group;
    (waits ? frontier.waiting : frontier.missing).push_back(view.rank);
  }
  return frontier;
}

std::string describe(const Frontier& frontier) {
  return fmt::format("{} {} in {}{}", rank_list(frontier.waiting),
                     verb(frontier.waiting, "waits", "wait"), describe_collective(*frontier.record),
                     with_parameters(*frontier.record));
}

}  // namespace gradsync::diagnosis
