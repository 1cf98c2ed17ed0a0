#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "gradsync/predict/accuracy.hpp"

namespace gradsync {

/// A number of a cluster description that is fitted.
struct FittedNumber {
  std::string key;   ///< in the description, with dots: "software.per_operation"
  std::string text;  ///< what was found, as it stands in the description
};

struct ClusterFit {
  nlohmann::ordered_json cluster;  ///< the description with the numbers put in
  std::vector<FittedNumber> numbers;
  AccuracyTable table;  ///< with what the simulation says now
};

/// Fits numbers of a description (durations, bandwidths or plain numbers) so that the *simulation*
/// of a table is nearest to its measurements (weighted_error), whatever algorithms the library
/// chooses on the way. One or two numbers: more would fit anything. Each starts from what the
/// description says, or from 10 us where that is no time at all.
ClusterFit fit_cluster(const AccuracyTable& table, const nlohmann::ordered_json& cluster,
                       const std::vector<std::string>& keys);

}  // namespace gradsync
