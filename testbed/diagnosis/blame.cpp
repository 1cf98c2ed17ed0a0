#include "gradsync/testbed/diagnosis/blame.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "gradsync/testbed/diagnosis/stragglers.hpp"
#include "gradsync/testbed/record/statistics.hpp"

namespace gradsync::diagnosis {
namespace {

/// Smaller differences are clock rounding, not lateness.
constexpr Seconds kRounding{1e-9};

struct Reduction {
  std::vector<std::pair<Seconds, int>> arrivals;  ///< time, rank
  Seconds end{0};                                 ///< on the last rank
  bool is_complete = true;

  const std::pair<Seconds, int>& last() const { return arrivals.back(); }
  Seconds middle() const { return arrivals[(arrivals.size() - 1) / 2].first; }
};

/// The reductions of one backward pass, in order: those between two waits of the loop.
using Pass = std::vector<Reduction>;
using PassKey = std::pair<std::int64_t, std::int64_t>;  // step, micro step

std::map<PassKey, Pass> passes_of(const Digest& digest, std::int64_t first_step) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Reduction> reductions;
  for (const RankView& view : digest.ranks) {
    for (const CollectiveRecord* record : view.collectives) {
      const CollectiveLabel& label = record->label;
      if (label.what != "gradients" || label.step < first_step) continue;
      Reduction& reduction = reductions[{label.step, label.micro_step, record->sequence}];
      reduction.arrivals.emplace_back(record->issued, view.rank);
      reduction.end = std::max(reduction.end, record->completed);
      if (record->completed < record->issued) reduction.is_complete = false;
    }
  }
  std::map<PassKey, Pass> passes;
  for (auto& [key, reduction] : reductions) {
    if (reduction.arrivals.size() != digest.ranks.size()) reduction.is_complete = false;
    std::sort(reduction.arrivals.begin(), reduction.arrivals.end());
    passes[{std::get<0>(key), std::get<1>(key)}].push_back(std::move(reduction));
  }
  return passes;
}

bool is_known(const Pass& pass) {
  return std::all_of(pass.begin(), pass.end(), [](const Reduction& r) { return r.is_complete; });
}

/// The reduction after which each one followed the previous without a gap.
const Reduction& decisive(const Pass& pass) {
  std::size_t at = pass.size() - 1;
  while (at > 0 && pass[at - 1].end > pass[at].last().first) --at;
  return pass[at];
}

/// How much earlier the pass would end if every reduction were entered at the median arrival.
Seconds saved_in(const Pass& pass) {
  Seconds end{0}, end_without{0};
  for (const Reduction& reduction : pass) {
    const Seconds begin = std::max(reduction.last().first, end);
    const Seconds duration = std::max(reduction.end - begin, Seconds{0});
    end = begin + duration;
    end_without = std::max(reduction.middle(), end_without) + duration;
  }
  return end - end_without;
}

/// By step, on the slowest rank.
std::map<std::int64_t, Seconds> step_durations(const Digest& digest) {
  std::map<std::int64_t, Seconds> durations;
  for (const RankView& view : digest.ranks) {
    if (view.report == nullptr) continue;
    for (const StepRecord& step : view.report->steps) {
      Seconds& longest = durations[step.step];
      longest = std::max(longest, step.optimizer_end - step.begin);
    }
  }
  return durations;
}

std::optional<Blame::Start> late_start(const Digest& digest) {
  std::vector<std::pair<Seconds, int>> arrivals;
  for (const RankView& view : digest.ranks) {
    if (view.collectives.empty() || view.collectives.front()->sequence != 0) return std::nullopt;
    arrivals.emplace_back(view.collectives.front()->issued, view.rank);
  }
  if (arrivals.size() < 2) return std::nullopt;
  std::sort(arrivals.begin(), arrivals.end());
  const Seconds late = arrivals.back().first - arrivals[(arrivals.size() - 1) / 2].first;
  if (late <= kRounding) return std::nullopt;
  return Blame::Start{arrivals.back().second, late};
}

struct Interval {
  Seconds begin{0};
  Seconds end{0};

  Seconds length() const { return end - begin; }
};

/// The times in which the reductions of a pass ran, one after another, with all ranks present.
std::vector<Interval> transfers_of(const Pass& pass) {
  std::vector<Interval> transfers;
  Seconds free{0};
  for (const Reduction& reduction : pass) {
    const Seconds begin = std::max(reduction.last().first, free);
    free = std::max(reduction.end, begin);
    transfers.push_back({begin, free});
  }
  return transfers;
}

bool overlap(const Interval& transfer, const WorldCondition& condition) {
  return transfer.end >= condition.begin && (!condition.end || transfer.begin <= *condition.end);
}

Seconds median(std::vector<Seconds> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Compares each reduction with the one at the same position in healthy passes.
std::vector<Blame::Network> network_costs(const Digest& digest) {
  const auto any = std::find_if(digest.ranks.begin(), digest.ranks.end(),
                                [](const RankView& view) { return view.report != nullptr; });
  if (any == digest.ranks.end() || any->report->world.empty()) return {};
  const std::vector<WorldCondition>& conditions = any->report->world;  // all ranks have the same
  std::map<PassKey, std::vector<Interval>> transfers;
  std::vector<std::vector<Seconds>> usual;  // by position in the pass
  for (const auto& [key, pass] : passes_of(digest, 0)) {
    if (!is_known(pass)) continue;
    const std::vector<Interval>& of_pass = transfers[key] = transfers_of(pass);
    if (usual.size() < of_pass.size()) usual.resize(of_pass.size());
    for (std::size_t i = 0; i < of_pass.size(); ++i) {
      const bool undisturbed =
          std::none_of(conditions.begin(), conditions.end(),
                       [&](const WorldCondition& c) { return overlap(of_pass[i], c); });
      if (undisturbed) usual[i].push_back(of_pass[i].length());
    }
  }
  constexpr double kLonger = 1.5;  // than comparable reductions, to count
  std::vector<Blame::Network> costs;
  for (const WorldCondition& condition : conditions) {
    std::map<std::int64_t, Seconds> lost_in;  // by step
    for (const auto& [key, of_pass] : transfers) {
      for (std::size_t i = 0; i < of_pass.size(); ++i) {
        if (usual[i].empty() || !overlap(of_pass[i], condition)) continue;
        const Seconds like = median(usual[i]);
        if (of_pass[i].length() > kLonger * like) lost_in[key.first] += of_pass[i].length() - like;
      }
    }
    if (lost_in.empty()) continue;
    Blame::Network cost;
    cost.what = condition.what;
    cost.steps = std::ssize(lost_in);
    for (const auto& [step, lost] : lost_in) {
      cost.lost += lost;
      if (lost <= cost.longest_lost) continue;
      cost.longest_lost = lost;
      cost.longest = step;
    }
    costs.push_back(std::move(cost));
  }
  return costs;
}

}  // namespace

Blame find_blame(const Digest& digest) {
  Blame blame;
  if (digest.ranks.size() < 2) return blame;
  blame.network = network_costs(digest);
  blame.start = late_start(digest);
  const std::map<std::int64_t, Seconds> durations = step_durations(digest);
  const std::int64_t first = first_steady_step(static_cast<std::int64_t>(durations.size()));
  std::map<int, Blame::Rank> by_rank;
  std::map<int, std::map<std::string, Seconds>> phases;
  std::map<int, Seconds> saved_by;
  Seconds saved{0}, time{0};
  std::int64_t last_step = -1;
  for (const auto& [key, pass] : passes_of(digest, first)) {
    const auto duration = durations.find(key.first);
    if (duration == durations.end() || !is_known(pass)) continue;
    if (key.first != last_step) {
      ++blame.steps;
      time += duration->second;
      last_step = key.first;
    }
    const Seconds saving = saved_in(pass);
    if (saving <= kRounding) continue;
    const Reduction& cause = decisive(pass);
    const int number = cause.last().second;
    saved += saving;
    saved_by[number] += saving;
    Blame::Rank& rank = by_rank[number];
    rank.rank = number;
    ++rank.steps;
    rank.lateness += cause.last().first - cause.middle();
    const RankView& view = digest.ranks[static_cast<std::size_t>(number)];
    const std::string phase = slow_phase(digest, view, key.first);
    if (!phase.empty()) phases[number][phase] += saving;
  }
  if (blame.steps == 0 || saved <= Seconds{0} || time <= saved) return blame;
  blame.saved = saved / static_cast<double>(blame.steps);
  blame.cost = saved / (time - saved);
  for (auto& [number, rank] : by_rank) {
    rank.share = saved_by[number] / saved;
    rank.cost = rank.share * blame.cost;
    rank.lateness /= static_cast<double>(rank.steps);
    Seconds most{0};
    for (const auto& [phase, seconds] : phases[number]) {
      if (seconds <= most) continue;
      most = seconds;
      rank.phase = phase;
    }
    blame.ranks.push_back(rank);
  }
  std::sort(blame.ranks.begin(), blame.ranks.end(), [](const auto& a, const auto& b) {
    return std::pair(b.share, a.rank) < std::pair(a.share, b.rank);
  });
  return blame;
}

std::string describe(const Blame& blame) {
  constexpr double kWorthALine = 0.005;
  constexpr double kStandsOut = 0.5;
  if (blame.cost < kWorthALine) return {};
  std::string text =
      fmt::format("{:.1f}% of a step ({:.3g} ms)", blame.cost * 100, blame.saved.count() * 1e3);
  const Blame::Rank& worst = blame.ranks.front();
  const std::string behind = worst.phase.empty() ? "" : ", behind in " + worst.phase;
  if (worst.share >= kStandsOut) {
    return text +
           fmt::format(": rank {} for {:.0f}% of it{}", worst.rank, worst.share * 100, behind);
  }
  return text +
         fmt::format(", spread over {} ranks; the largest part, {:.0f}%, is that of rank {}{}",
                     blame.ranks.size(), worst.share * 100, worst.rank, behind);
}

std::string describe(const Blame::Network& network) {
  const std::string where = network.steps == 1 ? fmt::format("step {}", network.longest)
                                               : fmt::format("{} steps, most of it in step {}",
                                                             network.steps, network.longest);
  return fmt::format("cost {:.3g} s in {}: {}", network.lost.count(), where, network.what);
}

}  // namespace gradsync::diagnosis
