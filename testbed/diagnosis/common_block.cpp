#include "gradsync/testbed/diagnosis/common_block.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/autograd/parameter_hash.hpp"
#include "gradsync/core/json_text.hpp"
#include "gradsync/testbed/diagnosis/rules.hpp"

namespace gradsync::diagnosis {
namespace {

/// Whether every rank's report has the field with the same value.
template <typename Field>
bool all_have_one(const Digest& digest, Field RankReport::*field) {
  std::set<Field> seen;
  for (const RankView& view : digest.ranks) {
    if (view.report == nullptr) return false;
    seen.insert(view.report->*field);
  }
  return seen.size() == 1 && !seen.begin()->empty();
}

/// The last step for which every rank has a parameter hash; -1 if there is none.
std::int64_t last_hashed_step(const Digest& digest) {
  std::int64_t last = -1;
  for (const RankView& view : digest.ranks) {
    std::int64_t of_rank = -1;
    if (view.report != nullptr) {
      for (const StepRecord& step : view.report->steps) {
        if (!step.parameter_hash.empty()) of_rank = std::max(of_rank, step.step);
      }
    }
    last = view.rank == 0 ? of_rank : std::min(last, of_rank);
  }
  return last;
}

bool any_collective(const Digest& digest) {
  return std::ranges::any_of(digest.ranks,
                             [](const RankView& view) { return !view.collectives.empty(); });
}

}  // namespace

void set_kind(Diagnosis& diagnosis, DiagnosisKind kind) {
  diagnosis.kind = kind;
  diagnosis.catalog = row_of(kind).catalog;
  diagnosis.fix = row_of(kind).fix;
}

Diagnosis make_diagnosis(DiagnosisKind kind, const char* verdict) {
  Diagnosis diagnosis;
  diagnosis.verdict = verdict;
  set_kind(diagnosis, kind);
  return diagnosis;
}

void note_majority(Diagnosis& diagnosis, const Disagreement& disagreement) {
  if (disagreement.undecided()) {
    diagnosis.confidence = "open";
    diagnosis.notes.push_back(fmt::format(
        "evidence of {} is missing and could turn the majority, so it does not say "
        "which side is right",
        disagreement.silent == 1 ? "one rank" : fmt::format("{} ranks", disagreement.silent)));
  } else if (disagreement.tie()) {
    diagnosis.confidence = "tie";
    diagnosis.notes.push_back(
        "the two sides are equally large, so the majority does not say which is right");
  }
}

namespace {

/// Kinds that the records of the named ranks show on their own, whatever other ranks did.
bool is_shown_by_itself(DiagnosisKind kind) {
  return kind == DiagnosisKind::kError || kind == DiagnosisKind::kRankDied ||
         kind == DiagnosisKind::kStartFailed || kind == DiagnosisKind::kUnevenShards;
}

/// Kinds that are found in step records.
bool is_of_steps(DiagnosisKind kind) {
  return kind >= DiagnosisKind::kLossScaleDiffers && kind <= DiagnosisKind::kStraggler;
}

}  // namespace

void weigh(Diagnosis& found, const Digest& digest) {
  if (found.kind == DiagnosisKind::kUnknown) found.confidence = "open";
  if (found.confidence != "certain") return;
  const bool heard = !digest.testimonies.empty();
  if (digest.gaps.steps && is_of_steps(found.kind)) {
    found.confidence = "open";
  } else if (!digest.absent().empty()) {
    found.confidence = is_shown_by_itself(found.kind) ? "likely" : "open";
  } else if (found.kind == DiagnosisKind::kNetwork || digest.gaps.scenario || heard ||
             !digest.with(Standing::kUnknown).empty()) {
    found.confidence = "likely";
  }
}

std::vector<std::string> ruled_out(const Diagnosis& found, const Digest& digest) {
  std::vector<std::string> list;
  const bool complete = digest.with(Standing::kUnknown).empty() && digest.absent().empty();
  if (!complete) return list;  // a silent rank may have done anything
  if (digest.with(Standing::kFailed).empty() && digest.with(Standing::kDied).empty()) {
    list.push_back("a crash: no rank failed or died");
  }
  if (any_collective(digest) && !first_mismatch(digest)) {
    list.push_back(
        "collectives that differ: all that met agree in operation, size, type and label");
  }
  if (all_have_one(digest, &RankReport::config_hash)) {
    list.push_back("settings that differ: all ranks have one configuration hash");
  }
  if (all_have_one(digest, &RankReport::tensors)) {
    list.push_back("models that differ: all ranks have the same parameters, in order and shape");
  }
  const std::int64_t hashed = last_hashed_step(digest);
  if (hashed >= 0 && !first_hash_difference(digest)) {
    list.push_back(fmt::format("parameters that differ: equal on all ranks up to step {}", hashed));
  }
  if (!digest.all_finished() && found.kind != DiagnosisKind::kNetwork &&
      digest.with(Standing::kRunning).empty()) {
    list.push_back("a rank that is busy: each waits in a collective or has ended");
  }
  return list;
}

Reproduction reproduction(const Diagnosis& found, const Scenario& scenario) {
  nlohmann::ordered_json json = to_json(scenario);
  for (const char* key : {"output", "expect", "backend"}) json.erase(key);
  Reproduction result;
  result.scenario_hash = hash_text(dump_json(json)).hex();
  result.seeds = fmt::format("seeds: weights {}, data {}, sampler {}", scenario.seed,
                             scenario.data.seed, scenario.sampler.seed);
  result.command = "gradsync run scenario.json";
  result.stop_step = found.step;
  return result;
}

}  // namespace gradsync::diagnosis
