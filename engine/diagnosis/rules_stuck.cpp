#include <algorithm>

#include <fmt/format.h>

#include "engine/core/rank_list.hpp"
#include "engine/diagnosis/evidence.hpp"
#include "engine/diagnosis/rules.hpp"
#include "engine/diagnosis/sentences.hpp"

namespace gradsync::diagnosis {
namespace {

void place(Diagnosis& diagnosis, const CollectiveRecord& record) {
  diagnosis.collective = describe_collective(record);
  if (record.label.step >= 0) diagnosis.step = record.label.step;
  if (record.label.bucket >= 0) diagnosis.bucket = record.label.bucket;
}

/// Where a rank stands, as the end of a sentence that begins with "rank N".
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
  std::vector<std::pair<std::string, std::vector<int>>> by_text;  // few texts, in order of ranks
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

std::optional<Diagnosis> find_not_joined(const Digest& digest) {
  const std::vector<int> absent = digest.with(Standing::kUnknown);
  if (digest.first_failure != FirstFailure::kTimeout || absent.empty()) return std::nullopt;
  std::vector<int> waiting;
  for (const RankView& view : digest.ranks) {
    if (view.standing == Standing::kUnknown) continue;
    if (view.report->phase != Phase::kInit || !view.collectives.empty()) return std::nullopt;
    waiting.push_back(view.rank);
  }
  Diagnosis diagnosis;
  diagnosis.verdict = "deadlock";
  diagnosis.kind = "not_joined";
  diagnosis.ranks = absent;
  diagnosis.because = fmt::format("{} never joined the job", rank_list(absent));
  diagnosis.first_cause = diagnosis.because;
  diagnosis.first_symptom =
      fmt::format("{} {} in the rendezvous", rank_list(waiting), verb(waiting, "waits", "wait"));
  diagnosis.fix = fmt::format(
      "start {} ranks, all with the same MASTER_ADDR, MASTER_PORT and WORLD_SIZE, and look at the "
      "output of those that did not come",
      digest.ranks.size());
  return diagnosis;
}

std::optional<Diagnosis> find_late_rank(const Digest& digest) {
  if (digest.first_failure != FirstFailure::kTimeout) return std::nullopt;
  const RankView& first = digest.ranks[static_cast<std::size_t>(digest.first_failed_rank)];
  if (first.pending == nullptr) return std::nullopt;
  // On a real network a rank that is merely slow learns of the failure when it comes to the same
  // collective: it was issued there after the wait of the others had ended.
  std::vector<int> late, waiting;
  for (const RankView& view : digest.ranks) {
    const bool here = view.pending != nullptr && view.pending->group == first.pending->group &&
                      view.pending->sequence == first.pending->sequence;
    if (!here) return std::nullopt;
    (view.pending->issued > first.report->ended ? late : waiting).push_back(view.rank);
  }
  if (late.empty()) return std::nullopt;
  Diagnosis diagnosis;
  diagnosis.verdict = "waiting";
  diagnosis.kind = "late_rank";
  diagnosis.ranks = late;
  place(diagnosis, *first.pending);
  diagnosis.because =
      fmt::format("{} came to {} only after the wait of {} had timed out: slow, not stuck",
                  rank_list(late), describe_collective(*first.pending), rank_list(waiting));
  diagnosis.first_cause = fmt::format("{} {} late", rank_list(late), verb(late, "was", "were"));
  diagnosis.first_symptom =
      fmt::format("{} {} in it", rank_list(waiting), verb(waiting, "waits", "wait"));
  diagnosis.fix = fmt::format(
      "raise timeout above what the slowest rank takes between two collectives, or find what holds "
      "{} up (trace.json shows the phases of each step)",
      rank_list(late));
  return diagnosis;
}

std::optional<Diagnosis> describe_unknown(const Digest& digest) {
  Diagnosis diagnosis;
  diagnosis.kind = "unknown";
  diagnosis.verdict = "deadlock";
  diagnosis.fix =
      "the records do not show the cause; flight/rank-N.json holds the last collectives of each "
      "rank";
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
  diagnosis.ranks = frontier->missing;
  if (frontier->missing.empty()) {
    diagnosis.because =
        "all ranks are inside the same collective, so none of them took a wrong turn: the network "
        "or "
        "the backend does not deliver, or the collective takes longer than the timeout";
    diagnosis.first_cause = "outside the ranks";
    diagnosis.fix = "look at links and hosts, and at what the timeout allows for this size";
    return diagnosis;
  }
  diagnosis.because = fmt::format(
      "{} {} not entered the collective in which the others wait: {}", rank_list(frontier->missing),
      verb(frontier->missing, "has", "have"), describe_standings(digest, frontier->missing));
  diagnosis.first_cause = "not known: why they did not come there";
  return diagnosis;
}

}  // namespace gradsync::diagnosis
