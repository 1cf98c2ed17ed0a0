#pragma once

#include <optional>
#include <string>

#include "gradsync/testbed/diagnosis/diagnosis.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// A scenario with what a diagnosis says to change, changed.
struct ScenarioFix {
  Scenario scenario;
  std::string description;  ///< "sampler.pad = true"
  /// All that was changed is that faults are gone: that the run then completes shows no fix.
  bool only_without_faults = false;
};

/// Nothing where no change of a scenario is known to help. The verdict comes from what ranks
/// recorded; the scenario says how they came to do it, and that is what is changed: an option, or
/// the fault that only some ranks have, which becomes that of all or of none.
std::optional<ScenarioFix> fix_scenario(const Scenario& scenario, const Diagnosis& diagnosis);

}  // namespace gradsync
