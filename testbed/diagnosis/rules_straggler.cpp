#include <algorithm>

#include <fmt/format.h>

#include "gradsync/core/rank_list.hpp"
#include "gradsync/testbed/diagnosis/rules.hpp"
#include "gradsync/testbed/diagnosis/stragglers.hpp"

namespace gradsync::diagnosis {
namespace {

/// Under Join, a rank with fewer batches shadows the others' collectives while they compute, so the
/// last arrival follows from the shards, not from a slow rank.
bool is_uneven_under_join(const Digest& digest) {
  if (!digest.scenario->ddp.join.enable) return false;
  return std::ranges::any_of(digest.ranks, [&](const RankView& view) {
    return view.report != nullptr && digest.ranks.front().report != nullptr &&
           view.report->steps_planned != digest.ranks.front().report->steps_planned;
  });
}

}  // namespace

/// A single rank that causes nearly all of the lateness, repeatedly, at a high cost. Noise would be
/// spread over the ranks, and a single event is not a straggler.
std::optional<Diagnosis> find_straggler(const Digest& digest) {
  constexpr std::int64_t kFewestCollectives = 4;
  constexpr double kNearlyAll = 0.75;
  constexpr double kMuch = 0.3;  // of the time of all steps
  if (is_uneven_under_join(digest)) return std::nullopt;
  const Arrivals arrivals = measure_arrivals(digest);
  if (!digest.all_finished() || arrivals.collectives < kFewestCollectives ||
      arrivals.ranks.empty()) {
    return std::nullopt;
  }
  const Arrivals::Rank& worst = arrivals.ranks.front();
  if (worst.clearly_late < kFewestCollectives || worst.share < kNearlyAll || worst.cost < kMuch) {
    return std::nullopt;
  }
  Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kStraggler, "waiting");
  diagnosis.ranks = {worst.rank};
  diagnosis.step = worst.first_late_step;
  diagnosis.because = fmt::format(
      "{} comes last to {} of {} reductions of gradients, behind in {}; the others wait for it in "
      "backward, so that all ranks' backward times look alike",
      rank_list(diagnosis.ranks), worst.clearly_late, arrivals.collectives,
      worst.phase.empty() ? "a phase that is not recorded" : worst.phase);
  diagnosis.first_cause = diagnosis.because;
  diagnosis.first_symptom = "steps take longer on every rank";
  diagnosis.fix =
      fmt::format("find what holds {} up in {} (trace.json shows the phases)",
                  rank_list(diagnosis.ranks), worst.phase.empty() ? "its steps" : worst.phase);
  return diagnosis;
}

}  // namespace gradsync::diagnosis
