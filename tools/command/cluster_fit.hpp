#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "gradsync/predict/accuracy.hpp"

namespace gradsync {

/// A fitted number of a cluster description.
struct FittedNumber {
  std::string key;    ///< in the description, dotted: "software.per_operation"
  std::string text;   ///< fitted value, in the description's notation
  std::string start;  ///< initial value in the description
  /// The log does not determine it: another value would explain the log as well. Keeps its initial
  /// value.
  bool is_undetermined = false;
  bool is_at_bound = false;  ///< of the physically possible range
};

struct ClusterFit {
  nlohmann::ordered_json cluster;  ///< the description with the fitted numbers
  std::vector<FittedNumber> numbers;
  AccuracyTable table;      ///< with the new simulated times
  double error_before = 0;  ///< geometric mean over all rows, with the initial description
};

/// Fits one to four numbers of a description (durations, bandwidths or plain numbers) such that the
/// *simulation* of a table is closest to its measurements, whatever algorithms the library selects.
/// Each number starts from the description's value (or from 10 us if that is zero), stays within
/// the physically possible range, and is pulled slightly towards its start. Uses absolute instead
/// of squared errors, so that a single outlier does not distort the fit. The result is never worse
/// than the initial description: if the table as a whole, or any of its rows, would be, all numbers
/// keep their start.
///
/// Collectives are simulated as flows.
ClusterFit fit_cluster(const AccuracyTable& table, const nlohmann::ordered_json& cluster,
                       const std::vector<std::string>& keys);

/// The numbers that a log of `ranks` ranks determines best: the bandwidth of the limiting links,
/// and, for every three rows, one that affects the small sizes.
std::vector<std::string> keys_to_fit(const nlohmann::ordered_json& cluster, int ranks,
                                     std::size_t rows);

}  // namespace gradsync
