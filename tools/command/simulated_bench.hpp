#pragma once

#include <string>
#include <vector>

#include "gradsync/predict/accuracy.hpp"
#include "gradsync/predict/bench_table.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// The description with all defaults filled in, because any of its numbers can be fitted. The
/// number of nodes remains what the ranks of each row need. `cluster` may be the name of a file,
/// relative to `folder`; `file` is the one that errors name.
nlohmann::ordered_json cluster_with_defaults(const nlohmann::ordered_json& cluster,
                                             const std::string& file, const std::string& folder);

/// All-reduces of these sizes on the simulated cluster of a scenario: one each, unchecked.
BenchTable simulate_allreduces(const Scenario& scenario, const std::vector<Bytes>& sizes);

/// Fills in the simulated time of each row of a published table. `cluster`, if not null, replaces
/// the table's.
void simulate_table(AccuracyTable& table, const nlohmann::ordered_json& cluster = nullptr);

}  // namespace gradsync
