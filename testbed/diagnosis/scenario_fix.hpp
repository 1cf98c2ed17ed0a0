#pragma once

#include <optional>
#include <string>

#include "gradsync/testbed/diagnosis/diagnosis.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// A scenario with the change that a diagnosis suggests.
struct ScenarioFix {
  Scenario scenario;
  std::string description;  ///< "sampler.pad = true"
  /// The change only removes faults, so a completed run does not prove a fix.
  bool only_without_faults = false;
};

/// Returns nullopt if no change of a scenario is known to help. The verdict comes from the ranks'
/// records; the change is made in the scenario that caused them: an option, or a fault that only
/// some ranks have, which is extended to all ranks or removed.
std::optional<ScenarioFix> fix_scenario(const Scenario& scenario, const Diagnosis& diagnosis);

}  // namespace gradsync
