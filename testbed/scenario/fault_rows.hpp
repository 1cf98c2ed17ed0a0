#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gradsync/testbed/scenario/scenario_table.hpp"

namespace gradsync::scenario_table {

/// The description of a kind of fault, apart from its implementation (testbed/faults).
struct FaultRow {
  Kind kind;  ///< its name, description and keys
  /// Whether it may also happen while a rank cleans up after a failure.
  bool at_clean_up = false;
  /// Returns why the scenario's backend cannot inject the fault, or "" if it can. If empty, every
  /// backend can.
  std::function<std::string(const FaultSpec& fault, const Scenario& scenario)> missing = {};
};

/// In the order of docs/scenarios.md.
const std::vector<FaultRow>& fault_rows();
/// The row for the kind of a fault.
const FaultRow& row_of(const FaultSpec& fault);

}  // namespace gradsync::scenario_table
