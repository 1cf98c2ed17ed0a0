#include <algorithm>

#include <fmt/format.h>

#include "gradsync/core/rank_list.hpp"
#include "gradsync/testbed/diagnosis/evidence.hpp"
#include "gradsync/testbed/diagnosis/rules.hpp"
#include "gradsync/testbed/diagnosis/sentences.hpp"
#include "gradsync/testbed/diagnosis/turns.hpp"

namespace gradsync::diagnosis {
namespace {

/// The collective in which the others wait for the ranks that took the turn, otherwise the first
/// one in which any rank waits.
const CollectiveRecord* waited_in(const Digest& digest, const Turn& turn) {
  const std::vector<Frontier> frontiers = find_frontiers(digest);
  for (const Frontier& frontier : frontiers) {
    const bool others = std::ranges::none_of(
        frontier.waiting, [&](int rank) { return std::ranges::binary_search(turn.ranks, rank); });
    if (others) return frontier.record;
  }
  return frontiers.empty() ? nullptr : frontiers.front().record;
}

/// The side of a mismatch with the ranks that took the turn.
const CollectiveRecord* issued_by(const Mismatch& mismatch, const Turn& turn) {
  const bool first = !turn.ranks.empty() &&
                     std::ranges::binary_search(mismatch.groups[0].ranks, turn.ranks.front());
  return first ? mismatch.record : mismatch.odd;
}

}  // namespace

std::optional<Diagnosis> find_turn(const Digest& digest) {
  if (digest.first_failure == FirstFailure::kDeath || digest.all_finished()) return std::nullopt;
  const auto turn = first_turn(digest);
  if (!turn) return std::nullopt;
  // A rank's own error needs no other cause, unless ranks were out of step before it.
  const auto mismatch = first_mismatch(digest);
  const bool failed = digest.first_failure == FirstFailure::kError;
  if (failed && !mismatch) return std::nullopt;
  const bool before =
      mismatch && std::max(mismatch->record->label.step, std::int64_t{0}) >= turn->step;
  if (mismatch && !before && !digest.is_forgotten(*mismatch->record)) return std::nullopt;

  Diagnosis diagnosis = make_diagnosis(turn->kind, "deadlock");
  diagnosis.ranks = turn->ranks;
  diagnosis.step = turn->step;
  diagnosis.because = turn->because;
  diagnosis.first_cause = turn->first_cause;
  if (turn->tie) {
    diagnosis.confidence = "tie";
    diagnosis.notes.push_back(
        "the two sides are equally large, so the majority does not say which "
        "is right");
  }
  if (turn->kind == DiagnosisKind::kSkippedStep ||
      turn->kind == DiagnosisKind::kSwallowedException) {
    diagnosis.because += mismatch
                             ? fmt::format(": from there on {} step s+1 met the others' step s",
                                           turn->ranks.size() == 1 ? "its" : "their")
                             : std::string(", in which the others wait");
  }
  const CollectiveRecord* collective =
      mismatch ? issued_by(*mismatch, *turn) : waited_in(digest, *turn);
  if (collective != nullptr) {
    diagnosis.collective = describe_collective(*collective);
    if (collective->label.bucket >= 0) diagnosis.bucket = collective->label.bucket;
  }
  add_symptom(diagnosis, digest, mismatch ? &*mismatch : nullptr);
  return diagnosis;
}

}  // namespace gradsync::diagnosis
