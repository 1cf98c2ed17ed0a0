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

const StepRecord* find_step(const RankView& view, std::int64_t step) {
  if (view.report == nullptr) return nullptr;
  for (const StepRecord& record : view.report->steps) {
    if (record.step == step) return &record;
  }
  return nullptr;
}

/// The names of tensors that are not the same on all ranks after `step`, parameters and buffers
/// apart; and which ranks hold which value of the first of them.
struct TensorDifference {
  std::vector<std::string> parameters, buffers;
  std::size_t parameter_count = 0;
  std::map<std::uint32_t, std::vector<int>> ranks_by_value;  ///< of the first that differs
};

std::string name_of(const std::string& tensor) {
  const auto begin = tensor.find(' ') + 1;
  return tensor.substr(begin, tensor.find(' ', begin) - begin);
}

TensorDifference compare_tensors(const Digest& digest, std::int64_t step) {
  TensorDifference difference;
  std::vector<std::pair<int, const StepRecord*>> steps;
  const RankReport* names = nullptr;
  for (const RankView& view : digest.ranks) {
    const StepRecord* record = find_step(view, step);
    if (record == nullptr || record->checksums.empty()) continue;
    if (names == nullptr && view.report->tensors.size() == record->checksums.size()) {
      names = view.report;
    }
    steps.emplace_back(view.rank, record);
  }
  if (names == nullptr) return difference;
  const std::size_t count = names->tensors.size();
  const auto buffers = static_cast<std::size_t>(std::max<std::int64_t>(names->buffer_count, 0));
  difference.parameter_count = count - std::min(buffers, count);
  for (std::size_t i = 0; i < count; ++i) {
    std::map<std::uint32_t, std::vector<int>> ranks_by_value;
    for (const auto& [rank, record] : steps) {
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

/// One ingredient of the update in which the parameters parted, over all ranks.
template <typename Value>
std::optional<Disagreement> compare_step(const Digest& digest, std::int64_t step, Value value) {
  std::map<std::string, std::vector<int>> ranks_by_value;
  for (const RankView& view : digest.ranks) {
    if (const StepRecord* record = find_step(view, step)) {
      ranks_by_value[value(*record)].push_back(view.rank);
    }
  }
  if (ranks_by_value.size() < 2) return std::nullopt;
  Disagreement disagreement;
  for (const auto& [text, ranks] : ranks_by_value) disagreement.groups.push_back({ranks, text});
  std::sort(disagreement.groups.begin(), disagreement.groups.end(),
            [](const RankGroup& a, const RankGroup& b) {
              return std::pair(b.ranks.size(), a.ranks.front()) <
                     std::pair(a.ranks.size(), b.ranks.front());
            });
  return disagreement;
}

std::string text_of(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : std::string("none");
}

struct Cause {
  std::string kind, catalog, because, fix;
  std::vector<int> ranks;
};

/// What sets the update of a step apart on some ranks: the scale of the loss, what was reduced, the
/// clip, the learning rate, or a tensor that is not reduced at all.
std::optional<Cause> find_cause(const Digest& digest, const HashDifference& difference) {
  const std::int64_t step = difference.step;
  if (const auto scales = compare_step(
          digest, step, [](const StepRecord& s) { return fmt::format("{}", s.loss_scale); })) {
    return Cause{"loss_scale_differs", "K09",
                 fmt::format("the loss scale is not the same on all ranks in step {}: {}", step,
                             scales->describe("has", "have")),
                 "share the scale: reduce found_inf over the ranks and let one GradScaler state "
                 "hold for all",
                 scales->odd_ranks()};
  }
  const auto last_local = compare_step(digest, step, [](const StepRecord& s) {
    return std::string(s.last_batch_reduced ? "reduced" : "kept local");
  });
  if (last_local) {
    return Cause{
        "no_sync_differs", "K11",
        fmt::format("the gradients of the last batch of step {} were not treated alike: {}", step,
                    last_local->describe("", "")),
        "reduce the last batch of a step on every rank", last_local->odd_ranks()};
  }
  const StepRecord* any = nullptr;
  for (const RankView& view : digest.ranks) {
    if (any == nullptr) any = find_step(view, step);
  }
  if (any != nullptr && any->reductions == 0) {
    return Cause{
        "reduction_stopped",
        "K11",
        fmt::format("none of the {} batches of step {} was reduced on any rank: each updated with "
                    "gradients of its own",
                    any->batches, step),
        "reduce the last micro step of every step; where no_sync and static_graph are combined, "
        "look at the number of reductions a step",
        {}};
  }
  if (any != nullptr && !any->last_batch_reduced) {
    return Cause{
        "last_batch_local",
        "K11",
        fmt::format("the last of the {} batches of step {} was kept local (no_sync) on all "
                    "ranks: each updated with gradients of its own",
                    any->batches, step),
        "reduce the last micro step and keep the others local: "
        "(i + 1) % accumulate_steps == 0, with the forward inside no_sync as well",
        {}};
  }
  if (const auto rates = compare_step(
          digest, step, [](const StepRecord& s) { return fmt::format("{}", s.learning_rate); })) {
    return Cause{
        "learning_rate_differs", "K25",
        fmt::format("the learning rate is not the same on all ranks in step {}: {}", step,
                    rates->describe("has", "have")),
        "reduce what a scheduler decides by (the validation loss), or let rank 0 decide and "
        "broadcast",
        rates->odd_ranks()};
  }
  const auto norms =
      compare_step(digest, step, [](const StepRecord& s) { return text_of(s.grad_norm); });
  const auto clips =
      compare_step(digest, step, [](const StepRecord& s) { return text_of(s.clip_coefficient); });
  if (clips && !norms) {
    return Cause{
        "clip_differs", "K09",
        fmt::format("gradients of one norm were clipped by factors that differ in step {}: "
                    "{}",
                    step, clips->describe("has", "have")),
        "clip after the reduction, with the same limit on every rank", clips->odd_ranks()};
  }
  const TensorDifference tensors = compare_tensors(digest, step);
  if (!tensors.parameters.empty() && tensors.parameters.size() < tensors.parameter_count) {
    return Cause{
        "parameter_outside_ddp",
        "K24",
        fmt::format("after step {} {} of {} parameters differ between ranks, all others are "
                    "equal: {} {} updated with gradients that no bucket holds",
                    step, tensors.parameters.size(), tensors.parameter_count,
                    list_names(tensors.parameters), tensors.parameters.size() == 1 ? "is" : "are"),
        "make DDP after the last change of the model's parameters, and do not list them in "
        "ddp.params_and_buffers_to_ignore",
        {}};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Diagnosis> find_parameters_differ(const Digest& digest) {
  const bool stopped_by_something_else =
      digest.first_failure != FirstFailure::kNone && !failed_with_desync(digest);
  if (stopped_by_something_else) return std::nullopt;
  const auto difference = first_hash_difference(digest);
  if (!difference) return std::nullopt;
  Diagnosis diagnosis;
  diagnosis.verdict = digest.all_finished() ? "silent divergence" : "desync";
  diagnosis.kind = "parameters_differ";
  diagnosis.ranks = difference->odd_ranks();
  diagnosis.step = difference->step;
  const std::string differ = fmt::format(
      "the parameters are not the same on all ranks after step {} (epoch {}): {}", difference->step,
      difference->epoch, difference->describe("has hash", "have hash"));
  diagnosis.because = differ;
  diagnosis.first_cause = fmt::format("step {} updated the parameters differently on {}",
                                      difference->step, rank_list(diagnosis.ranks));
  diagnosis.first_symptom = differ;
  if (difference->tie()) note_tie(diagnosis);
  if (const auto cause = find_cause(digest, *difference)) {
    diagnosis.kind = cause->kind;
    diagnosis.catalog = cause->catalog;
    diagnosis.because = cause->because;
    diagnosis.first_cause = cause->because;
    diagnosis.fix = cause->fix;
    diagnosis.ranks = cause->ranks;
    return diagnosis;
  }
  const auto norms = compare_step(digest, difference->step,
                                  [](const StepRecord& s) { return text_of(s.grad_norm); });
  diagnosis.notes.push_back(
      norms ? "gradient norms differ in that step, so the reduced gradients do: " +
                  norms->describe("has", "have")
            : "loss scale, learning rate, clipping and the batches that were reduced are equal in "
              "that "
              "step");
  diagnosis.fix =
      "look for what only those ranks do between the all-reduce and the update: gradients that are "
      "changed, a kernel that is not deterministic, a parameter that no bucket holds";
  return diagnosis;
}

std::optional<Diagnosis> find_buffers_differ(const Digest& digest) {
  // With broadcast_buffers each forward makes them equal, and then each rank's own batch changes
  // them: between steps they differ in a training that is as it should be.
  if (!digest.all_finished() || digest.scenario->ddp.broadcast_buffers) return std::nullopt;
  std::set<std::int64_t> steps;
  for (const RankView& view : digest.ranks) {
    for (const StepRecord& step : view.report->steps) {
      if (!step.checksums.empty()) steps.insert(step.step);
    }
  }
  for (const std::int64_t step : steps) {
    const TensorDifference difference = compare_tensors(digest, step);
    if (difference.buffers.empty() || !difference.parameters.empty()) continue;
    Diagnosis diagnosis;
    diagnosis.verdict = "silent divergence";
    diagnosis.kind = "buffers_differ";
    diagnosis.catalog = "K20";
    diagnosis.step = step;
    diagnosis.because = fmt::format(
        "{} differ between ranks from step {} on, while all parameters are equal: "
        "ddp.broadcast_buffers is false, so each rank's buffers follow its own batches",
        list_names(difference.buffers), step);
    diagnosis.first_cause = diagnosis.because;
    diagnosis.first_symptom = "none: a model in evaluation mode gives other results on each rank";
    diagnosis.fix =
        "set ddp.broadcast_buffers to true, or synchronise the moments themselves (SyncBatchNorm)";
    return diagnosis;
  }
  return std::nullopt;
}

}  // namespace gradsync::diagnosis
