#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gradsync/testbed/scenario/scenario_table.hpp"

namespace gradsync::scenario_table {

/// All that there is to know of a kind of fault, beside what it does (testbed/faults).
struct FaultRow {
  Kind kind;  ///< its name, its description and its keys
  /// It may happen while a rank cleans up after a failure, not only in the training.
  bool at_clean_up = false;
  /// Why the scenario's backend cannot do the fault; "" where it can. May be empty: any can.
  std::function<std::string(const FaultSpec& fault, const Scenario& scenario)> missing = {};
};

/// In the order of docs/scenarios.md.
const std::vector<FaultRow>& fault_rows();
/// The row of the kind that a fault is of.
const FaultRow& row_of(const FaultSpec& fault);

}  // namespace gradsync::scenario_table
