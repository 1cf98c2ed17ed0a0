#include "gradsync/testbed/diagnosis/stragglers.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "gradsync/testbed/diagnosis/blame.hpp"

#include "gradsync/testbed/diagnosis/sentences.hpp"

namespace gradsync::diagnosis {
namespace {

struct Arrival {
  Seconds time;
  int rank;
  std::int64_t step;
};

/// The arrival times of the ranks, by group and sequence number.
std::map<std::pair<std::string, std::int64_t>, std::vector<Arrival>> arrivals_of(
    const Digest& digest) {
  std::map<std::pair<std::string, std::int64_t>, std::vector<Arrival>> arrivals;
  for (const RankView& view : digest.ranks) {
    for (const CollectiveRecord* record : view.collectives) {
      // Only the first bucket, because the others follow from it.
      if (record->label.what != "gradients" || record->label.bucket > 0) continue;
      arrivals[{record->group, record->sequence}].push_back(
          {record->issued, view.rank, record->label.step});
    }
  }
  return arrivals;
}

Seconds time_of_all_steps(const Digest& digest) {
  Seconds longest{0};
  for (const RankView& view : digest.ranks) {
    if (view.report == nullptr || view.report->steps.empty()) continue;
    longest = std::max(longest,
                       view.report->steps.back().optimizer_end - view.report->steps.front().begin);
  }
  return longest;
}

}  // namespace

std::string slow_phase(const Digest& digest, const RankView& view, std::int64_t step) {
  constexpr const char* kNames[] = {"data", "forward", "backward", "optimizer"};
  const auto durations = [step](const RankView& of) -> std::vector<double> {
    const std::vector<StepRecord>& steps = of.report->steps;
    const auto at =
        std::lower_bound(steps.begin(), steps.end(), step,
                         [](const StepRecord& r, std::int64_t s) { return r.step < s; });
    if (at == steps.end() || at->step != step) return {};
    const bool has_before = at != steps.begin() && (at - 1)->step + 1 == step;
    const Seconds optimizer =
        has_before ? (at - 1)->optimizer_end - (at - 1)->backward_end : Seconds{0};
    return {(at->data_end - at->begin).count(), (at->forward_end - at->data_end).count(),
            (at->backward_compute_end - at->forward_end).count(), optimizer.count()};
  };
  if (view.report == nullptr) return {};
  const std::vector<double> mine = durations(view);
  if (mine.empty()) return {};
  std::size_t slowest = 0;
  double most = 0;
  for (std::size_t phase = 0; phase < mine.size(); ++phase) {
    std::vector<double> others;
    for (const RankView& other : digest.ranks) {
      if (other.report == nullptr || other.rank == view.rank) continue;
      const std::vector<double> theirs = durations(other);
      if (!theirs.empty()) others.push_back(theirs[phase]);
    }
    if (others.empty()) continue;
    const auto middle = others.begin() + std::ssize(others) / 2;
    std::nth_element(others.begin(), middle, others.end());
    if (mine[phase] - *middle > most) {
      most = mine[phase] - *middle;
      slowest = phase;
    }
  }
  return kNames[slowest];
}

Arrivals measure_arrivals(const Digest& digest) {
  Arrivals result;
  std::map<int, Arrivals::Rank> by_rank;
  std::map<int, std::map<std::string, int>> phases;
  std::map<int, std::vector<std::pair<Seconds, std::int64_t>>> late;  // lateness and step
  for (auto& [key, arrivals] : arrivals_of(digest)) {
    if (arrivals.size() != digest.ranks.size() || arrivals.size() < 2) continue;
    std::sort(arrivals.begin(), arrivals.end(), [](const Arrival& a, const Arrival& b) {
      return std::pair(a.time, a.rank) < std::pair(b.time, b.rank);
    });
    const Arrival& last = arrivals.back();
    const Seconds skew = last.time - arrivals.front().time;
    const Seconds middle = arrivals[(arrivals.size() - 1) / 2].time;
    ++result.collectives;
    result.skew_mean += skew;
    result.skew_max = std::max(result.skew_max, skew);
    if (skew <= Seconds{0}) continue;
    Arrivals::Rank& rank = by_rank[last.rank];
    rank.rank = last.rank;
    ++rank.last;
    rank.lateness += last.time - middle;
    late[last.rank].emplace_back(last.time - middle, last.step);
    const RankView& view = digest.ranks[static_cast<std::size_t>(last.rank)];
    if (const std::string phase = slow_phase(digest, view, last.step); !phase.empty()) {
      ++phases[last.rank][phase];
    }
  }
  if (result.collectives > 0) result.skew_mean /= static_cast<double>(result.collectives);
  const Seconds total = time_of_all_steps(digest);
  Seconds lateness_of_all{0};
  for (const auto& [number, rank] : by_rank) lateness_of_all += rank.lateness;
  for (auto& [number, rank] : by_rank) {
    if (total > Seconds{0}) rank.cost = rank.lateness / total;
    if (lateness_of_all > Seconds{0}) rank.share = rank.lateness / lateness_of_all;
    for (const auto& [by, step] : late[number]) {
      if (2 * by < rank.lateness / static_cast<double>(rank.last)) continue;
      rank.first_late_step = ++rank.clearly_late == 1 ? step : std::min(rank.first_late_step, step);
    }
    int most = 0;
    for (const auto& [phase, count] : phases[number]) {
      if (count > most) {
        most = count;
        rank.phase = phase;
      }
    }
    result.ranks.push_back(rank);
  }
  std::sort(result.ranks.begin(), result.ranks.end(),
            [](const Arrivals::Rank& a, const Arrivals::Rank& b) {
              return std::pair(b.lateness, a.rank) < std::pair(a.lateness, b.rank);
            });
  return result;
}

std::string describe_arrivals(const std::vector<RankReport>& reports, const Scenario& scenario) {
  const Digest digest = make_digest(reports, scenario);
  const Arrivals arrivals = measure_arrivals(digest);
  if (arrivals.collectives == 0) return {};
  std::string text =
      fmt::format("\narrival at {} of gradients: {:.3g} ms from first to last, at most {:.3g} ms\n",
                  count_of(arrivals.collectives, "reduction"), arrivals.skew_mean.count() * 1e3,
                  arrivals.skew_max.count() * 1e3);
  constexpr std::size_t kShown = 5;
  for (std::size_t i = 0; i < std::min(arrivals.ranks.size(), kShown); ++i) {
    const Arrivals::Rank& rank = arrivals.ranks[i];
    text += fmt::format("  rank {} last {} times{}, {:.1f} % of the steps' time\n", rank.rank,
                        rank.last, rank.phase.empty() ? "" : ", behind in " + rank.phase,
                        rank.cost * 100);
  }
  for (const Blame::Network& network : find_blame(digest).network) {
    text += "  slow network " + describe(network) + "\n";
  }
  return text;
}

}  // namespace gradsync::diagnosis
