#pragma once

#include <vector>

#include "gradsync/predict/accuracy.hpp"
#include "gradsync/predict/bench_table.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// All-reduces of these sizes on the simulated cluster of a scenario: one each, unchecked.
BenchTable simulate_allreduces(const Scenario& scenario, const std::vector<Bytes>& sizes);

/// Fills in the simulated time of each row of a published table. `cluster`, if not null, replaces
/// the table's.
void simulate_table(AccuracyTable& table, const nlohmann::ordered_json& cluster = nullptr);

}  // namespace gradsync
