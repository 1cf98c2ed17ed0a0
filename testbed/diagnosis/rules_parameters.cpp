#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "gradsync/core/rank_list.hpp"
#include "gradsync/testbed/diagnosis/evidence.hpp"
#include "gradsync/testbed/diagnosis/rules.hpp"
#include "gradsync/testbed/diagnosis/sentences.hpp"

namespace gradsync::diagnosis {
namespace {

bool failed_with_desync(const Digest& digest) {
  if (digest.first_failure != FirstFailure::kError) return false;
  const auto rank = static_cast<std::size_t>(digest.first_failed_rank);
  return digest.ranks[rank].report->error_code == ErrorCode::kDesync;
}

/// The tensors that differ between ranks after `step`, parameters and buffers separately, and which
/// ranks hold which value of the first of them.
struct TensorDifference {
  std::vector<std::string> parameters, buffers;
  std::size_t parameter_count = 0;
  std::map<std::uint32_t, std::vector<int>> ranks_by_value;  ///< of the first that differs
};

std::string name_of(const std::string& tensor) {
  const auto begin = tensor.find(' ') + 1;
  return tensor.substr(begin, tensor.find(' ', begin) - begin);
}

TensorDifference compare_tensors(const Digest& digest, const StepOfRanks& step) {
  TensorDifference difference;
  const RankReport* names = nullptr;
  for (const auto& [rank, record] : step) {
    const RankReport& report = *digest.of(rank).report;
    if (!record->checksums.empty() && report.tensors.size() == record->checksums.size()) {
      names = &report;
    }
  }
  if (names == nullptr) return difference;
  const std::size_t count = names->tensors.size();
  const auto buffers = static_cast<std::size_t>(std::max<std::int64_t>(names->buffer_count, 0));
  difference.parameter_count = count - std::min(buffers, count);
  for (std::size_t i = 0; i < count; ++i) {
    std::map<std::uint32_t, std::vector<int>> ranks_by_value;
    for (const auto& [rank, record] : step) {
      if (i < record->checksums.size()) ranks_by_value[record->checksums[i]].push_back(rank);
    }
    if (ranks_by_value.size() < 2) continue;
    const bool is_buffer = i >= difference.parameter_count;
    (is_buffer ? difference.buffers : difference.parameters).push_back(name_of(names->tensors[i]));
    if (difference.ranks_by_value.empty()) difference.ranks_by_value = ranks_by_value;
  }
  return difference;
}

std::string list_names(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

/// One input of the update at which the parameters diverged, over all ranks.
template <typename Value>
std::optional<Disagreement> compare_step(const HashDifference& parting, Value value) {
  std::map<std::string, std::vector<int>> ranks_by_value;
  for (const auto& [rank, record] : parting.records) {
    ranks_by_value[value(*record)].push_back(rank);
  }
  if (ranks_by_value.size() < 2) return std::nullopt;
  return compare_ranks(ranks_by_value, parting.silent);
}

std::string text_of(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : std::string("none");
}

/// What distinguishes the update of a step on some ranks.
struct Cause {
  DiagnosisKind kind;
  std::string because;
  std::vector<int> ranks;
};

std::optional<Cause> other_loss_scale(const HashDifference& parting) {
  const auto scales =
      compare_step(parting, [](const StepRecord& s) { return fmt::format("{}", s.loss_scale); });
  if (!scales) return std::nullopt;
  return Cause{DiagnosisKind::kLossScaleDiffers,
               fmt::format("the loss scale is not the same on all ranks in step {}: {}",
                           parting.step, scales->describe("has", "have")),
               scales->odd_ranks()};
}

/// Whether the gradients were reduced: on some ranks, or on none.
std::optional<Cause> other_reduction(const HashDifference& parting) {
  const auto last_local = compare_step(parting, [](const StepRecord& s) {
    return std::string(s.last_batch_reduced ? "reduced" : "kept local");
  });
  if (last_local) {
    return Cause{
        DiagnosisKind::kNoSyncDiffers,
        fmt::format("the gradients of the last batch of step {} were not treated alike: {}",
                    parting.step, last_local->describe("", "")),
        last_local->odd_ranks()};
  }
  const StepRecord* any = parting.records.front().second;
  if (any->reductions == 0) {
    return Cause{
        DiagnosisKind::kReductionStopped,
        fmt::format("none of the {} batches of step {} was reduced on any rank: each updated with "
                    "gradients of its own",
                    any->batches, parting.step),
        {}};
  }
  if (!any->last_batch_reduced) {
    return Cause{
        DiagnosisKind::kLastBatchLocal,
        fmt::format("the last of the {} batches of step {} was kept local (no_sync) on all "
                    "ranks: each updated with gradients of its own",
                    any->batches, parting.step),
        {}};
  }
  return std::nullopt;
}

std::optional<Cause> other_learning_rate(const HashDifference& parting) {
  const auto rates =
      compare_step(parting, [](const StepRecord& s) { return fmt::format("{}", s.learning_rate); });
  if (!rates) return std::nullopt;
  return Cause{DiagnosisKind::kLearningRateDiffers,
               fmt::format("the learning rate is not the same on all ranks in step {}: {}",
                           parting.step, rates->describe("has", "have")),
               rates->odd_ranks()};
}

std::optional<Cause> other_clip(const HashDifference& parting) {
  const auto norms =
      compare_step(parting, [](const StepRecord& s) { return text_of(s.grad_norm); });
  const auto clips =
      compare_step(parting, [](const StepRecord& s) { return text_of(s.clip_coefficient); });
  if (!clips || norms) return std::nullopt;
  return Cause{DiagnosisKind::kClipDiffers,
               fmt::format("gradients of one norm were clipped by factors that differ in step {}: "
                           "{}",
                           parting.step, clips->describe("has", "have")),
               clips->odd_ranks()};
}

/// The parameters that are in no bucket, according to the first rank with parameter lists.
std::vector<std::string> in_no_bucket(const Digest& digest) {
  for (const RankView& view : digest.ranks) {
    if (view.report == nullptr || view.report->tensors.empty() || view.report->buckets.empty()) {
      continue;
    }
    std::set<std::string> held;
    for (const BucketSummary& bucket : view.report->buckets) {
      held.insert(bucket.parameters.begin(), bucket.parameters.end());
    }
    if (held.empty()) continue;  // a summary, which has no lists
    std::vector<std::string> outside;
    const auto parameters = std::ssize(view.report->tensors) - view.report->buffer_count;
    for (std::ptrdiff_t i = 0; i < parameters; ++i) {
      std::string name = name_of(view.report->tensors[static_cast<std::size_t>(i)]);
      if (!held.contains(name)) outside.push_back(std::move(name));
    }
    return outside;
  }
  return {};
}

/// A tensor that is not reduced at all. If gradients are clipped, it affects the others too,
/// because the norm then differs between ranks.
std::optional<Cause> outside_ddp(const Digest& digest, const HashDifference& parting) {
  const TensorDifference tensors = compare_tensors(digest, parting.records);
  const std::vector<std::string> outside = in_no_bucket(digest);
  if (!outside.empty()) {
    const bool one = outside.size() == 1;
    std::string because = fmt::format(
        "{} of {} parameters {} in no bucket, so each rank updates {} with gradients of "
        "its own: {} (different between ranks after step {})",
        outside.size(), tensors.parameter_count, one ? "is" : "are", one ? "it" : "them",
        list_names(outside), parting.step);
    if (tensors.parameters.size() > outside.size()) {
      because +=
          "; the norm by which gradients are clipped differs with them, and through it all "
          "other parameters do";
    }
    return Cause{DiagnosisKind::kParameterOutsideDdp, std::move(because), {}};
  }
  if (tensors.parameters.empty() || tensors.parameters.size() == tensors.parameter_count) {
    return std::nullopt;
  }
  return Cause{
      DiagnosisKind::kParameterOutsideDdp,
      fmt::format("after step {} {} of {} parameters differ between ranks, all others are "
                  "equal: {} {} updated with gradients that no bucket holds",
                  parting.step, tensors.parameters.size(), tensors.parameter_count,
                  list_names(tensors.parameters), tensors.parameters.size() == 1 ? "is" : "are"),
      {}};
}

/// In the order in which they contribute to an update.
std::optional<Cause> find_cause(const Digest& digest, const HashDifference& parting) {
  for (const auto find : {other_loss_scale, other_reduction, other_learning_rate, other_clip}) {
    if (auto cause = find(parting)) return cause;
  }
  return outside_ddp(digest, parting);
}

}  // namespace

std::optional<Diagnosis> find_parameters_differ(const Digest& digest) {
  const bool stopped_by_something_else =
      digest.first_failure != FirstFailure::kNone && !failed_with_desync(digest);
  if (stopped_by_something_else) return std::nullopt;
  const auto difference = first_hash_difference(digest);
  if (!difference) return std::nullopt;
  Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kParametersDiffer,
                                       digest.all_finished() ? "silent divergence" : "desync");
  diagnosis.ranks = difference->odd_ranks();
  diagnosis.step = difference->step;
  const std::string differ = fmt::format(
      "the parameters are not the same on all ranks after step {} (epoch {}): {}", difference->step,
      difference->epoch, difference->describe("has hash", "have hash"));
  diagnosis.because = differ;
  diagnosis.first_cause = fmt::format("step {} updated the parameters differently on {}",
                                      difference->step, rank_list(diagnosis.ranks));
  diagnosis.first_symptom = differ;
  note_majority(diagnosis, *difference);
  if (const auto cause = find_cause(digest, *difference)) {
    set_kind(diagnosis, cause->kind);
    diagnosis.because = cause->because;
    diagnosis.first_cause = cause->because;
    diagnosis.ranks = cause->ranks;
    return diagnosis;
  }
  const auto norms =
      compare_step(*difference, [](const StepRecord& s) { return text_of(s.grad_norm); });
  diagnosis.notes.push_back(
      norms ? "gradient norms differ in that step, so the reduced gradients do: " +
                  norms->describe("has", "have")
            : "loss scale, learning rate, clipping and the batches that were reduced are equal in "
              "that "
              "step");
  return diagnosis;
}

std::optional<Diagnosis> find_buffers_differ(const Digest& digest) {
  // With broadcast_buffers, each forward equalizes the buffers and then each rank's own batch
  // changes them, so they differ between steps in a correct training.
  if (!digest.all_finished() || digest.scenario->ddp.broadcast_buffers) return std::nullopt;
  for (const StepOfRanks& records : steps_of_ranks(digest)) {
    const std::int64_t step = records.front().second->step;
    const TensorDifference difference = compare_tensors(digest, records);
    if (difference.buffers.empty() || !difference.parameters.empty()) continue;
    Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kBuffersDiffer, "silent divergence");
    diagnosis.step = step;
    diagnosis.because = fmt::format(
        "{} differ between ranks from step {} on, while all parameters are equal: "
        "ddp.broadcast_buffers is false, so each rank's buffers follow its own batches",
        list_names(difference.buffers), step);
    diagnosis.first_cause = diagnosis.because;
    diagnosis.first_symptom = "none: a model in evaluation mode gives other results on each rank";
    return diagnosis;
  }
  return std::nullopt;
}

}  // namespace gradsync::diagnosis
