#include "gradsync/testbed/diagnosis/scenario_fix.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace gradsync {
namespace {

template <class... Kinds>
bool is_any_of(const FaultSpec& fault) {
  return (std::holds_alternative<Kinds>(fault.kind) || ...);
}

/// Faults that put ranks out of step only because not all of them have it.
bool is_harmless_on_all(const FaultSpec& fault) {
  const auto* exception = fault.as<ThrowFault>();
  if (exception != nullptr) return exception->caught;
  return is_any_of<SkipFault, LeaveLoopFault, CollectiveFault, GroupFault, LossScaleFault,
                   ClipFault, LearningRateFault, ResumeFault>(fault);
}

/// Whether two collectives were one call with two payloads.
bool are_one_call(const FaultSpec& a, const FaultSpec& b) {
  const auto* first = a.as<CollectiveFault>();
  const auto* second = b.as<CollectiveFault>();
  return first != nullptr && second != nullptr && first->name == second->name &&
         first->at == second->at && first->step == second->step && first->group == second->group;
}

/// Per epoch, with padding.
std::int64_t samples_of_a_rank(const Scenario& scenario) {
  return (scenario.data.samples + scenario.ranks - 1) / scenario.ranks;
}

/// Extends a fault to all ranks if that puts them in step, and otherwise removes it.
std::string change_faults(Scenario& scenario, bool& only_removed) {
  std::string changes;
  only_removed = true;
  std::vector<FaultSpec> kept;
  for (std::size_t i = 0; i < scenario.faults.size(); ++i) {
    FaultSpec fault = scenario.faults[i];
    const bool everywhere = fault.ranks.empty() || std::ssize(fault.ranks) == scenario.ranks;
    std::string change;
    auto* evaluation = fault.as<EvaluateFault>();
    if (evaluation != nullptr && evaluation->through_ddp) {
      evaluation->through_ddp = false;
      change = fmt::format("faults[{}] (evaluate): around DDP", i);
    } else if (is_harmless_on_all(fault)) {
      if (!everywhere) change = fmt::format("faults[{}] ({}): on all ranks", i, name_of(fault));
      fault.ranks.clear();
    } else {
      changes +=
          fmt::format("{}without faults[{}] ({})", changes.empty() ? "" : "; ", i, name_of(fault));
      continue;
    }
    if (!change.empty()) {
      changes += (changes.empty() ? "" : "; ") + change;
      only_removed = false;
    }
    // Two that were one call with two payloads become equal; keep one of them.
    const bool twice = std::any_of(kept.begin(), kept.end(), [&](const FaultSpec& other) {
      return are_one_call(fault, other);
    });
    if (!twice) kept.push_back(fault);
  }
  scenario.faults = std::move(kept);
  return changes;
}

}  // namespace

std::optional<ScenarioFix> fix_scenario(const Scenario& scenario, const Diagnosis& diagnosis) {
  ScenarioFix fix{scenario, {}, false};
  Scenario& s = fix.scenario;
  s.expect = {};
  const DiagnosisKind kind = diagnosis.kind;
  if (kind == DiagnosisKind::kUnevenShards || kind == DiagnosisKind::kUnevenBatches) {
    s.sampler.shard_sizes.clear();
    s.sampler.pad = true;
    fix.description = "sampler.pad = true, without sampler.shard_sizes";
    // For unequal batches within a step: use a batch size that divides a rank's samples.
    const std::int64_t samples = samples_of_a_rank(s);
    if (kind == DiagnosisKind::kUnevenBatches && samples % s.train.batch_size != 0) {
      while (samples % s.train.batch_size != 0) --s.train.batch_size;
      fix.description += fmt::format(", train.batch_size = {}", s.train.batch_size);
    }
  } else if (kind == DiagnosisKind::kUnusedParameters) {
    s.ddp.find_unused_parameters = true;
    fix.description = "ddp.find_unused_parameters = true";
  } else if (kind == DiagnosisKind::kStaticGraphChanged) {
    s.ddp.static_graph = false;
    s.ddp.find_unused_parameters = true;
    fix.description = "ddp.static_graph = false, ddp.find_unused_parameters = true";
  } else if (kind == DiagnosisKind::kBuffersDiffer) {
    s.ddp.broadcast_buffers = true;
    fix.description = "ddp.broadcast_buffers = true";
  } else if (kind == DiagnosisKind::kParameterOutsideDdp &&
             !s.ddp.params_and_buffers_to_ignore.empty()) {
    s.ddp.params_and_buffers_to_ignore.clear();
    fix.description = "ddp.params_and_buffers_to_ignore = []";
  } else if (kind == DiagnosisKind::kSlowSection || kind == DiagnosisKind::kLateRank) {
    constexpr double kMore = 10;
    s.timeout *= kMore;
    fix.description = fmt::format("timeout = {}", format_duration(s.timeout));
  } else if (kind == DiagnosisKind::kSameOrderEveryEpoch && !s.sampler.set_epoch) {
    s.sampler.set_epoch = true;
    fix.description = "sampler.set_epoch = true";
  } else {
    fix.description = change_faults(s, fix.only_without_faults);
  }
  if (fix.description.empty()) return std::nullopt;
  return fix;
}

}  // namespace gradsync
