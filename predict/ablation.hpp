#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/train/scenario.hpp"
#include "predict/point_result.hpp"

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
/// What an entry draws at random (a rank's factor, the ends of a flow of traffic) depends on its
/// place among its like: without the first of two flows the second draws what the first had drawn.
std::vector<Ablation> ablations(const Scenario& scenario);

struct AblationAnswer {
  PointResult as_is;
  struct Row {
    Ablation without;
    PointResult result;
  };
  std::vector<Row> rows;  ///< as `ablations` gave them
};

/// The mean of a steady step, in seconds: over steps and ranks, with what a rank waits for others.
double mean_step(const PointResult& point);
/// What part of the steps' mean length a row's entries cost: 0.12 is 12% of a step as it is. 0
/// where one of the two runs did not complete.
double cost(const AblationAnswer& answer, const AblationAnswer::Row& row);

/// The answer for a person, most costly first; and for a program.
std::string describe(const AblationAnswer& answer);
nlohmann::ordered_json to_json(const AblationAnswer& answer);

}  // namespace gradsync
