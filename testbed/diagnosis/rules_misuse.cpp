#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "gradsync/core/rank_list.hpp"
#include "gradsync/testbed/diagnosis/evidence.hpp"
#include "gradsync/testbed/diagnosis/misuse_words.hpp"
#include "gradsync/testbed/diagnosis/rules.hpp"
#include "gradsync/testbed/diagnosis/sentences.hpp"

namespace gradsync::diagnosis {
namespace {

std::optional<Misuse> misuse_of(const RankView& view) {
  if (view.standing != Standing::kFailed || view.report->error_code != ErrorCode::kMisuse) {
    return std::nullopt;
  }
  return find_misuse_words(view.report->error);
}

/// The text between `begin` and `end`; empty if they do not occur.
std::string between(const std::string& text, std::string_view begin, std::string_view end) {
  const auto from = text.find(begin);
  if (from == std::string::npos) return {};
  const auto start = from + begin.size();
  const auto stop = text.find(end, start);
  return stop == std::string::npos ? std::string() : text.substr(start, stop - start);
}

std::vector<int> ranks_with(const Digest& digest, Misuse misuse) {
  std::vector<int> ranks;
  for (const RankView& view : digest.ranks) {
    if (misuse_of(view) == misuse) ranks.push_back(view.rank);
  }
  return ranks;
}

/// Adds the bucket at which the others wait, in terms of the rank with missing gradients.
void add_bucket(Diagnosis& diagnosis, const Digest& digest) {
  const auto frontier = find_frontier(digest);
  if (!frontier) {
    diagnosis.first_symptom = diagnosis.kind == DiagnosisKind::kReadyTwice
                                  ? "backward stops at the second gradient"
                                  : "the next forward pass refuses to begin";
    return;
  }
  diagnosis.collective = describe_collective(*frontier->record);
  if (frontier->record->label.bucket >= 0) diagnosis.bucket = frontier->record->label.bucket;
  diagnosis.first_symptom = describe(*frontier);
  diagnosis.consequences.push_back(
      fmt::format("the errors of {} follow from it", rank_list(frontier->waiting)));
}

/// What is known about the other ranks' gradients in that step, as the end of a sentence.
std::string others_in(const Digest& digest, const std::vector<int>& ranks, std::int64_t step) {
  if (ranks.size() == digest.ranks.size()) return "; it is so on all ranks";
  std::vector<int> complete;
  for (const RankView& view : digest.ranks) {
    if (std::find(ranks.begin(), ranks.end(), view.rank) != ranks.end()) continue;
    const bool issued = std::any_of(
        view.collectives.begin(), view.collectives.end(), [&](const CollectiveRecord* record) {
          return record->label.step == step && record->label.what == "gradients";
        });
    if (issued) complete.push_back(view.rank);
  }
  if (complete.empty()) return "; the other ranks were stopped before they came so far";
  return fmt::format("; {} had all of them", rank_list(complete));
}

/// "ranks 0-1 had no gradient for head.bias", for each set of parameters.
std::string describe_missing(const Digest& digest, const std::vector<int>& ranks) {
  std::map<std::string, std::vector<int>> ranks_by_set;
  for (const int rank : ranks) {
    const std::string& error = digest.ranks[static_cast<std::size_t>(rank)].report->error;
    ranks_by_set[between(error, "no gradient arrived for ", ". ")].push_back(rank);
  }
  std::string text;
  for (const auto& [missing, of] : ranks_by_set) {
    text += fmt::format("{}{} had no gradient for {}", text.empty() ? "" : " and ", rank_list(of),
                        missing);
  }
  return text +
         fmt::format(", so {} bucket was never complete", ranks.size() == 1 ? "its" : "their") +
         (ranks_by_set.size() > 1 ? "; the sets differ" : "");
}

void explain_unfinished(Diagnosis& diagnosis, const Digest& digest, const RankReport& report) {
  // The error appears in the forward pass after the one that skipped them.
  diagnosis.step = report.steps_completed - 1;
  const bool is_static = digest.scenario->ddp.static_graph;
  set_kind(diagnosis,
           is_static ? DiagnosisKind::kStaticGraphChanged : DiagnosisKind::kUnusedParameters);
  diagnosis.because =
      fmt::format("in step {} {}{}", *diagnosis.step, describe_missing(digest, diagnosis.ranks),
                  others_in(digest, diagnosis.ranks, *diagnosis.step));
  diagnosis.first_cause = fmt::format("a branch of the model was not taken by {} in step {}",
                                      rank_list(diagnosis.ranks), *diagnosis.step);
}

void explain_ready_twice(Diagnosis& diagnosis, const RankReport& report) {
  const std::string parameter = between(report.error, "but parameter ", " got a second gradient");
  set_kind(diagnosis, DiagnosisKind::kReadyTwice);
  diagnosis.step = report.steps_completed;
  diagnosis.because =
      fmt::format("the hook of {} fired twice in one backward pass, in step {} on {}", parameter,
                  *diagnosis.step, rank_list(diagnosis.ranks));
  diagnosis.first_cause = diagnosis.because;
}

void explain_not_attached(Diagnosis& diagnosis, const RankReport& report) {
  set_kind(diagnosis, DiagnosisKind::kLossNotAttached);
  diagnosis.step = report.steps_completed;
  diagnosis.because = fmt::format(
      "in step {} the loss of {} depends on no parameter, so backward has nothing to reduce there",
      *diagnosis.step, rank_list(diagnosis.ranks));
  diagnosis.first_cause = diagnosis.because;
}

void explain_graph_changed(Diagnosis& diagnosis, const RankReport& report) {
  const std::string parameter = between(report.error, "parameter ", " got a gradient");
  set_kind(diagnosis, DiagnosisKind::kStaticGraphChanged);
  diagnosis.step = report.steps_completed;
  diagnosis.because = fmt::format(
      "in step {} {} got a gradient for {}, which the first step did not have; static_graph holds "
      "every step to the first",
      *diagnosis.step, rank_list(diagnosis.ranks), parameter);
  diagnosis.first_cause = diagnosis.because;
}

}  // namespace

std::optional<Diagnosis> find_misuse(const Digest& digest) {
  if (digest.first_failure != FirstFailure::kError) return std::nullopt;
  const RankView& first = digest.ranks[static_cast<std::size_t>(digest.first_failed_rank)];
  const auto misuse = misuse_of(first);
  if (!misuse) return std::nullopt;
  Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kUnusedParameters, "crash");
  diagnosis.ranks = ranks_with(digest, *misuse);
  switch (*misuse) {
    case Misuse::kUnfinished:
      explain_unfinished(diagnosis, digest, *first.report);
      break;
    case Misuse::kReadyTwice:
      explain_ready_twice(diagnosis, *first.report);
      break;
    case Misuse::kGraphChanged:
      explain_graph_changed(diagnosis, *first.report);
      break;
    case Misuse::kNotAttached:
      explain_not_attached(diagnosis, *first.report);
      break;
  }
  add_bucket(diagnosis, digest);
  return diagnosis;
}

}  // namespace gradsync::diagnosis
