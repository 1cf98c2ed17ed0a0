#include <algorithm>

#include <fmt/format.h>

#include "gradsync/core/rank_list.hpp"
#include "gradsync/testbed/diagnosis/evidence.hpp"
#include "gradsync/testbed/diagnosis/rules.hpp"
#include "gradsync/testbed/diagnosis/sentences.hpp"

namespace gradsync::diagnosis {
namespace {

/// Network faults at `date` or later. All ranks have the same list.
std::vector<WorldCondition> conditions_since(const Digest& digest, Seconds date) {
  std::vector<WorldCondition> conditions;
  for (const RankView& view : digest.ranks) {
    if (view.report == nullptr) continue;
    for (const WorldCondition& condition : view.report->world) {
      if (condition.end.value_or(date) >= date) conditions.push_back(condition);
    }
    break;
  }
  return conditions;
}

}  // namespace

std::optional<Diagnosis> find_network(const Digest& digest) {
  const auto frontier = find_frontier(digest);
  if (!frontier || !frontier->missing.empty()) return std::nullopt;
  Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kNetwork, "deadlock");
  place(diagnosis, *frontier->record);
  diagnosis.first_symptom = describe(*frontier);
  const std::string inside =
      "all ranks are inside the same collective, so none of them took a wrong turn: ";
  const std::vector<WorldCondition> conditions = conditions_since(digest, frontier->record->issued);
  if (conditions.empty()) {
    diagnosis.because = inside +
                        "the network or the backend does not deliver, or the collective takes "
                        "longer than the timeout";
    diagnosis.first_cause = "outside the ranks";
    return diagnosis;
  }
  const bool delivers = std::all_of(conditions.begin(), conditions.end(),
                                    [](const WorldCondition& c) { return c.delivers; });
  std::string what;
  for (const WorldCondition& condition : conditions) {
    what += (what.empty() ? "" : "; ") + condition.what;
  }
  diagnosis.because = inside + what;
  diagnosis.first_cause = std::move(what);
  if (delivers) {
    diagnosis.verdict = "waiting";
    diagnosis.because += fmt::format("; slow, not stuck: it takes longer than the timeout of {}",
                                     format_duration(digest.scenario->timeout));
    diagnosis.fix =
        "mend the link; until then a timeout above what the collective takes over it lets the job "
        "go on";
  } else {
    diagnosis.fix =
        "mend the link; where it comes back by itself, a timeout above its outages lets the job go "
        "on";
  }
  return diagnosis;
}

}  // namespace gradsync::diagnosis
