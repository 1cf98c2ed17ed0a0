#pragma once

#include <string>

#include "gradsync/testbed/scenario/scenario_document.hpp"

namespace gradsync::scenario_table {

/// Reads every key of the document by the table and fills in the defaults. Throws ConfigError for
/// the first mistake in the order of the file.
Scenario read_scenario(const ScenarioDocument& document, const std::string& base_dir);

/// Checks what more than one value has a part in. Throws ConfigError with the pointers of both.
void check_scenario(const ScenarioDocument& document, const Scenario& scenario);
/// The parts of it that are about faults and imperfections.
void check_faults(const ScenarioDocument& document, const Scenario& scenario);
void check_imperfections(const ScenarioDocument& document, const Scenario& scenario);

}  // namespace gradsync::scenario_table
