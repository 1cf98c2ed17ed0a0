#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gradsync/predict/point_result.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// One thing that is wrong with a scenario's world, and what takes it away.
struct Ablation {
  std::string pointer;  ///< "/imperfections/links/0"; empty: all of it
  std::string entry;    ///< what stands there, as JSON
  std::vector<ScenarioOverride> overrides;
};

/// Each imperfection and each fault of a scenario by itself, in the order of its resolved form;
/// last, where there are several, all of them together. Empty where nothing is wrong.
///
/// What stalls and flows of traffic draw at random depends on their place among their like. They
/// stay where they are, as stalls that never come and as no flows, so that the others draw the
/// same.
std::vector<Ablation> ablations(const Scenario& scenario);

struct AblationAnswer {
  PointResult as_is;
  struct Row {
    Ablation without;
    PointResult result;
  };
  std::vector<Row> rows;  ///< as `ablations` gave them
};

/// What part of the time from step to step (PointResult::period) a row's entries cost: 0.12 is 12%
/// of it as it is. 0 where one of the two runs did not complete.
double cost(const AblationAnswer& answer, const AblationAnswer::Row& row);

/// The answer for a person, most costly first; and for a program.
std::string describe(const AblationAnswer& answer);
nlohmann::ordered_json to_json(const AblationAnswer& answer);

}  // namespace gradsync
