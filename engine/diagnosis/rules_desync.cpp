#include <fmt/format.h>

#include "engine/core/rank_list.hpp"
#include "engine/diagnosis/evidence.hpp"
#include "engine/diagnosis/rules.hpp"
#include "engine/diagnosis/sentences.hpp"

namespace gradsync::diagnosis {
namespace {

constexpr const char* kTieNote =
    "the two sides are equally large, so the majority does not say which is right";

bool failed_with_desync(const Digest& digest) {
  if (digest.first_failure != FirstFailure::kError) return false;
  const auto rank = static_cast<std::size_t>(digest.first_failed_rank);
  return digest.ranks[rank].report->error_code == ErrorCode::kDesync;
}

const StepRecord* find_step(const RankView& view, std::int64_t step) {
  for (const StepRecord& record : view.report->steps) {
    if (record.step == step) return &record;
  }
  return nullptr;
}

/// What else differs, or does not, in the step in which the parameters parted: the ingredients of
/// an update are the reduced gradient, its clipping and the learning rate.
std::string compare_ingredients(const Digest& digest, const HashDifference& difference) {
  const auto view = [&](std::size_t group) -> const RankView& {
    return digest.ranks[static_cast<std::size_t>(difference.groups[group].ranks.front())];
  };
  const StepRecord* a = find_step(view(0), difference.step);
  const StepRecord* b = find_step(view(1), difference.step);
  if (a->learning_rate != b->learning_rate) {
    return fmt::format("their learning rates differ: {} and {}", a->learning_rate,
                       b->learning_rate);
  }
  if (a->grad_norm != b->grad_norm && a->grad_norm && b->grad_norm) {
    return fmt::format("their gradient norms differ: {} and {}, so the reduced gradients do",
                       *a->grad_norm, *b->grad_norm);
  }
  return "learning rates and gradient norms are equal in that step";
}

}  // namespace

std::optional<Diagnosis> find_parameters_differ(const Digest& digest) {
  const bool stopped_by_something_else =
      digest.first_failure != FirstFailure::kNone && !failed_with_desync(digest);
  if (stopped_by_something_else) return std::nullopt;
  const auto difference = first_hash_difference(digest);
  if (!difference) return std::nullopt;
  Diagnosis diagnosis;
  diagnosis.verdict = "desync";
  diagnosis.kind = "parameters_differ";
  diagnosis.ranks = difference->odd_ranks();
  diagnosis.step = difference->step;
  diagnosis.because = fmt::format(
      "the parameters are not the same on all ranks after step {} (epoch {}): {}", difference->step,
      difference->epoch, difference->describe("has hash", "have hash"));
  diagnosis.first_cause = fmt::format("step {} updated the parameters differently on {}",
                                      difference->step, rank_list(diagnosis.ranks));
  diagnosis.first_symptom = diagnosis.because;
  diagnosis.notes.push_back(compare_ingredients(digest, *difference));
  if (difference->tie()) diagnosis.notes.push_back(kTieNote);
  diagnosis.fix =
      "look for what only those ranks do between the all-reduce and the update: a clip or a "
      "learning "
      "rate of their own, a parameter that no bucket holds, a kernel that is not deterministic";
  return diagnosis;
}

std::optional<Diagnosis> find_mismatch(const Digest& digest) {
  if (!failed_with_desync(digest)) return std::nullopt;
  Diagnosis diagnosis;
  diagnosis.verdict = "desync";
  diagnosis.kind = "mismatch";
  const auto mismatch = first_mismatch(digest);
  if (!mismatch) {
    // Found by a comparison of the engine's own, such as that of the parameters when DDP is built.
    const auto rank = static_cast<std::size_t>(digest.first_failed_rank);
    const RankReport& report = *digest.ranks[rank].report;
    diagnosis.because = report.error;
    diagnosis.first_cause = "the ranks do not run the same program on the same model";
    diagnosis.first_symptom = report.error;
    diagnosis.fix = "make what the message names equal on all ranks";
    return diagnosis;
  }
  const CollectiveLabel& label = mismatch->record->label;
  diagnosis.ranks = mismatch->odd_ranks();
  if (label.step >= 0) diagnosis.step = std::min(label.step, mismatch->odd->label.step);
  if (label.bucket >= 0) diagnosis.bucket = label.bucket;
  diagnosis.collective = describe_collective(*mismatch->odd);
  diagnosis.because = fmt::format("collective #{} of {} is not the same on all ranks: {}",
                                  mismatch->record->sequence, mismatch->record->group,
                                  mismatch->describe("issued", "issued"));
  diagnosis.first_cause = diagnosis.because;
  diagnosis.first_symptom = diagnosis.because;
  if (mismatch->tie()) diagnosis.notes.push_back(kTieNote);
  diagnosis.fix =
      "all ranks must issue the same collectives in the same order: look for a branch, a "
      "skipped step or a size that depends on the rank";
  return diagnosis;
}

}  // namespace gradsync::diagnosis
