#pragma once

#include <string>

#include "gradsync/testbed/scenario/scenario_document.hpp"

namespace gradsync::scenario_table {

/// Reads every key of the document by the table and fills in the defaults. Throws ConfigError for
/// the first error in file order.
Scenario read_scenario(const ScenarioDocument& document, const std::string& base_dir);

/// Checks constraints between values. Throws ConfigError with the pointers of both values.
void check_scenario(const ScenarioDocument& document, const Scenario& scenario);
/// The part of check_scenario for faults and imperfections.
void check_faults(const ScenarioDocument& document, const Scenario& scenario);
void check_imperfections(const ScenarioDocument& document, const Scenario& scenario);

}  // namespace gradsync::scenario_table
