#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gradsync/predict/point_result.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// One fault or imperfection of a scenario, and the change that removes it.
struct Ablation {
  std::string pointer;  ///< "/imperfections/links/0"; empty: all of them
  std::string entry;    ///< its JSON text
  std::vector<ScenarioOverride> overrides;
};

/// One ablation for each imperfection and each fault of a scenario, in the order of its resolved
/// form, and, if there are several, a last one that removes all of them. Empty if there is nothing
/// to remove.
///
/// The random draws of loader stalls and traffic flows depend on their index in the list. They are
/// therefore neutralized in place (stalls that never happen, no flows), so that the draws of the
/// others stay the same.
std::vector<Ablation> ablations(const Scenario& scenario);

struct AblationAnswer {
  PointResult as_is;
  struct Row {
    Ablation without;
    PointResult result;
  };
  std::vector<Row> rows;  ///< in the order of `ablations`
};

/// The fraction of the time per step (PointResult::period) that a row's entries cost: 0.12 is 12%
/// of the unchanged time. 0 if one of the two runs did not complete.
double cost(const AblationAnswer& answer, const AblationAnswer::Row& row);

/// The answer as text, most expensive first, and as JSON.
std::string describe(const AblationAnswer& answer);
nlohmann::ordered_json to_json(const AblationAnswer& answer);

}  // namespace gradsync
