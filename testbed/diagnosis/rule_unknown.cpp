#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "gradsync/core/rank_list.hpp"
#include "gradsync/testbed/diagnosis/evidence.hpp"
#include "gradsync/testbed/diagnosis/rules.hpp"
#include "gradsync/testbed/diagnosis/sentences.hpp"

namespace gradsync::diagnosis {
namespace {

/// A rank's position, as the end of a sentence that starts with "rank N".
std::string standing_of(const RankView& view) {
  switch (view.standing) {
    case Standing::kFinished:
      return fmt::format("finished after {} of {}", view.report->steps_completed,
                         count_of(view.report->steps_planned, "step"));
    case Standing::kUnknown:
      return "left no report";
    case Standing::kBlocked:
      if (view.pending != nullptr) return "stood in " + describe_collective(*view.pending);
      break;
    case Standing::kDied:
    case Standing::kFailed:
    case Standing::kRunning:
      break;
  }
  const char* how = view.standing == Standing::kDied     ? "died"
                    : view.standing == Standing::kFailed ? "failed"
                                                         : "stood";
  return fmt::format("{} in {}, step {}", how, to_string(view.report->phase),
                     view.report->steps_completed);
}

/// "rank 3 stood in data, step 4; ranks 4-5 finished after 7 of 10 steps"
std::string describe_standings(const Digest& digest, const std::vector<int>& ranks) {
  std::vector<std::pair<std::string, std::vector<int>>> by_text;  // few texts, by first rank
  for (const int rank : ranks) {
    const std::string text = standing_of(digest.ranks[static_cast<std::size_t>(rank)]);
    auto same = std::find_if(by_text.begin(), by_text.end(),
                             [&](const auto& entry) { return entry.first == text; });
    if (same == by_text.end()) same = by_text.insert(by_text.end(), {text, {}});
    same->second.push_back(rank);
  }
  std::string sentence;
  for (const auto& [text, of] : by_text) {
    if (!sentence.empty()) sentence += "; ";
    sentence += fmt::format("{} {}", rank_list(of), text);
  }
  return sentence;
}

}  // namespace

std::optional<Diagnosis> describe_unknown(const Digest& digest) {
  if (digest.all_finished() || digest.all_known_finished()) return std::nullopt;
  Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kUnknown, "deadlock");
  const auto frontier = find_frontier(digest);
  if (!frontier) {
    std::vector<int> all;
    for (const RankView& view : digest.ranks) all.push_back(view.rank);
    diagnosis.because =
        "no rank is known to wait in a collective: " + describe_standings(digest, all);
    diagnosis.first_cause = "not known";
    diagnosis.first_symptom = "the run did not end";
    if (digest.first_failure == FirstFailure::kTimeout) {
      diagnosis.first_symptom =
          digest.ranks[static_cast<std::size_t>(digest.first_failed_rank)].report->error;
    }
    return diagnosis;
  }
  place(diagnosis, *frontier->record);
  diagnosis.first_symptom = describe(*frontier);
  // Ranks without a file may have joined it.
  if (digest.absent().empty()) diagnosis.ranks = frontier->missing;
  diagnosis.because = fmt::format(
      "{} {} not entered the collective in which the others wait: {}", rank_list(frontier->missing),
      verb(frontier->missing, "has", "have"), describe_standings(digest, frontier->missing));
  diagnosis.first_cause = "not known: why they did not come there";
  return diagnosis;
}

std::optional<Diagnosis> describe_gaps(const Digest& digest) {
  const std::vector<int> absent = digest.absent();
  if (!digest.all_known_finished() || (absent.empty() && !digest.gaps.any())) return std::nullopt;
  std::vector<int> known;
  for (const RankView& view : digest.ranks) {
    if (view.given) known.push_back(view.rank);
  }
  Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kNothingFound, "clean");
  diagnosis.confidence = "open";
  diagnosis.because = fmt::format("{} finished, and nothing is wrong with what {} records show",
                                  rank_list(known), known.size() == 1 ? "its" : "their");
  if (digest.gaps.steps) {
    diagnosis.because +=
        "; no collective is wrong, but parameters, losses and learning rates were not compared";
  }
  if (!absent.empty()) {
    diagnosis.because += fmt::format("; what {} did is not known", rank_list(absent));
  }
  diagnosis.first_cause = diagnosis.because;
  return diagnosis;
}

}  // namespace gradsync::diagnosis
