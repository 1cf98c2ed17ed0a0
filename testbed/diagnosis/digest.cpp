#include "gradsync/testbed/diagnosis/digest.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "gradsync/testbed/diagnosis/testimony.hpp"

namespace gradsync::diagnosis {
namespace {

/// An empty report: the rank was killed or has not started. If its launcher ended it after others
/// had failed, that says nothing about the rank.
bool is_blank(const RankReport& report) {
  if (report.error_code && report.error_code != ErrorCode::kPeerFailed) return false;
  return report.state == RankState::kRunning && report.phase == Phase::kInit &&
         report.flight.empty() && report.collectives.empty() && report.steps.empty() &&
         report.phases.empty();
}

bool is_of_others(ErrorCode code) {
  return code == ErrorCode::kPeerFailed || code == ErrorCode::kRankDied;
}

/// Whether the rank was ended by a signal: it reported that as its last words and left a report.
bool ended_by_signal(const RankReport& report) {
  constexpr int kSignalled = 128;           // a shell's convention for "ended by a signal"
  if (report.clean_up_since) return false;  // it had failed before, as its error says
  return report.error_code == ErrorCode::kRankDied &&
         (report.exit_signal || report.exit_code.value_or(0) > kSignalled);
}

Standing standing_of(const RankReport& report, bool pending) {
  const bool process_ended = report.exit_signal || report.exit_code;
  switch (report.state) {
    case RankState::kFinished:
      return Standing::kFinished;
    case RankState::kRunning:
      if (process_ended && report.error_code == ErrorCode::kPeerFailed) break;  // by the launcher
      if (process_ended || report.error_code == ErrorCode::kRankDied) return Standing::kDied;
      break;
    case RankState::kFailed:
      if (ended_by_signal(report)) return Standing::kDied;
      if (report.error_code == ErrorCode::kTimeout) return Standing::kBlocked;
      if (!report.error_code || !is_of_others(*report.error_code)) return Standing::kFailed;
      break;
  }
  if (pending) return Standing::kBlocked;
  return is_blank(report) ? Standing::kUnknown : Standing::kRunning;
}

RankView view_of(const RankReport& report) {
  RankView view;
  view.rank = report.rank;
  view.given = true;
  view.report = &report;
  view.collectives = all_collectives(report);
  for (const CollectiveRecord* record : view.collectives) {
    if (record->state == CollectiveState::kCompleted) {
      view.last_completed = record;
    } else if (view.pending == nullptr) {
      view.pending = record;
    }
  }
  if (view.pending == nullptr && report.failed_collective) {
    view.pending = &*report.failed_collective;
  }
  view.standing = standing_of(report, view.pending != nullptr);
  view.timed_out = view.standing == Standing::kBlocked && report.error_code == ErrorCode::kTimeout;
  if (view.standing == Standing::kUnknown) view.report = nullptr;
  return view;
}

void find_first_failure(Digest& digest) {
  Seconds first{0};
  for (const RankView& view : digest.ranks) {
    FirstFailure kind = FirstFailure::kNone;
    if (view.timed_out) kind = FirstFailure::kTimeout;
    if (view.standing == Standing::kFailed) kind = FirstFailure::kError;
    if (view.standing == Standing::kDied) kind = FirstFailure::kDeath;
    if (kind == FirstFailure::kNone) continue;
    if (digest.first_failure == FirstFailure::kNone || view.report->ended < first) {
      digest.first_failure = kind;
      digest.first_failed_rank = view.rank;
      first = view.report->ended;
    }
  }
}

/// Adds reports for silent ranks, as far as the errors of others mention them.
void add_testimonies(Digest& digest, const std::vector<RankReport>& reports) {
  for (auto& [rank, report] : read_testimonies(reports)) {
    if (rank < 0 || rank >= static_cast<int>(digest.ranks.size())) continue;
    RankView& view = digest.ranks[static_cast<std::size_t>(rank)];
    if (view.standing != Standing::kUnknown) continue;
    const bool given = view.given;
    digest.testimonies.push_back(std::move(report));
    view = view_of(digest.testimonies.back());
    view.given = given;
    view.testified = true;
  }
}

/// Both ends of a channel are its members, even if only one has issued something.
void add_both_ends(const Channel& channel, const Digest& digest, std::vector<int>& ranks) {
  const auto group = digest.members.find(channel.group);
  for (const int end : {channel.from, channel.to}) {
    int rank = end;
    if (channel.group != kDefaultGroupName) {
      if (group == digest.members.end() || end >= std::ssize(group->second)) continue;
      rank = group->second[static_cast<std::size_t>(end)];
    }
    if (rank >= std::ssize(digest.ranks) || std::ranges::find(ranks, rank) != ranks.end()) continue;
    ranks.insert(std::ranges::upper_bound(ranks, rank), rank);
  }
}

void find_groups(Digest& digest) {
  std::vector<int> all(digest.ranks.size());
  std::iota(all.begin(), all.end(), 0);
  for (const RankView& view : digest.ranks) {
    std::map<std::string_view, std::int64_t> first;  // the oldest record of this rank
    for (const CollectiveRecord* record : view.collectives) {
      const auto [oldest, added] = first.try_emplace(record->group, record->sequence);
      oldest->second = std::min(oldest->second, record->sequence);
      if (!added) continue;
      digest.members[record->group].push_back(view.rank);
    }
    // Testimonies do not come from a ring; a summary only shows where the rank is.
    if (view.testified || (view.report != nullptr && view.report->phases.empty())) continue;
    for (const auto& [group, sequence] : first) {
      std::int64_t& since = digest.recorded_since[std::string(group)];
      since = std::max(since, sequence);
    }
  }
  for (auto& [group, ranks] : digest.members) {
    if (group.starts_with("new_group ")) ranks = all;  // a call of all ranks
  }
  for (auto& [name, ranks] : digest.members) {
    if (const auto channel = parse_channel(name)) add_both_ends(*channel, digest, ranks);
  }
  digest.members[kDefaultGroupName] = std::move(all);
}

}  // namespace

const char* to_string(Standing standing) noexcept {
  switch (standing) {
    case Standing::kFinished:
      return "finished";
    case Standing::kBlocked:
      return "blocked";
    case Standing::kFailed:
      return "failed";
    case Standing::kDied:
      return "died";
    case Standing::kRunning:
      return "running";
    case Standing::kUnknown:
      return "no report";
  }
  return "unknown";
}

std::vector<int> Digest::with(Standing standing) const {
  std::vector<int> found;
  for (const RankView& view : ranks) {
    if (view.standing == standing) found.push_back(view.rank);
  }
  return found;
}

bool Digest::all_finished() const {
  return std::all_of(ranks.begin(), ranks.end(),
                     [](const RankView& view) { return view.standing == Standing::kFinished; });
}

bool Digest::all_known_finished() const {
  bool any = false;
  for (const RankView& view : ranks) {
    if (!view.given && !view.testified) continue;
    if (view.standing != Standing::kFinished) return false;
    any = true;
  }
  return any;
}

std::vector<int> Digest::absent() const {
  std::vector<int> found;
  for (const RankView& view : ranks) {
    if (!view.given && !view.testified) found.push_back(view.rank);
  }
  return found;
}

bool Digest::is_forgotten(const CollectiveRecord& record) const {
  const auto since = recorded_since.find(record.group);
  return since != recorded_since.end() && record.sequence <= since->second && since->second > 0;
}

bool Digest::rings_wrapped() const {
  return std::ranges::any_of(recorded_since, [](const auto& of) { return of.second > 0; });
}

Digest make_digest(const std::vector<RankReport>& reports, const Scenario& scenario,
                   EvidenceGaps gaps) {
  Digest digest;
  digest.gaps = std::move(gaps);
  digest.scenario = &scenario;
  digest.ranks.resize(static_cast<std::size_t>(std::max<std::int64_t>(scenario.ranks, 0)));
  for (std::size_t rank = 0; rank < digest.ranks.size(); ++rank) {
    digest.ranks[rank].rank = static_cast<int>(rank);
  }
  for (const RankReport& report : reports) {
    if (report.rank < 0 || report.rank >= scenario.ranks) {
      digest.foreign_ranks.push_back(report.rank);
    } else {
      digest.ranks[static_cast<std::size_t>(report.rank)] = view_of(report);
    }
  }
  add_testimonies(digest, reports);
  find_groups(digest);
  find_first_failure(digest);
  return digest;
}

}  // namespace gradsync::diagnosis
