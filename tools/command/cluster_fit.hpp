#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "gradsync/predict/accuracy.hpp"

namespace gradsync {

/// A number of a cluster description that is fitted.
struct FittedNumber {
  std::string key;    ///< in the description, with dots: "software.per_operation"
  std::string text;   ///< what was found, as it stands in the description
  std::string start;  ///< what the description said
  /// The log says nothing of it: another value would explain the log as well. It is left as it was.
  bool is_undetermined = false;
  bool is_at_bound = false;  ///< of what is physically possible
};

struct ClusterFit {
  nlohmann::ordered_json cluster;  ///< the description with the numbers put in
  std::vector<FittedNumber> numbers;
  AccuracyTable table;      ///< with what the simulation says now
  double error_before = 0;  ///< geometric mean over all rows, with the description as it was
};

/// Fits numbers of a description (durations, bandwidths or plain numbers) so that the *simulation*
/// of a table is nearest to its measurements, whatever algorithms the library chooses on the way.
/// One to four numbers. Each starts from what the description says, or from 10 us where that is no
/// time at all, stays within what is physically possible, and is drawn a little to where it
/// started; distances count and not their squares, so that one wild row does not drag the others
/// along. The result is never further from the table than the description was.
///
/// Collectives are simulated as flows.
ClusterFit fit_cluster(const AccuracyTable& table, const nlohmann::ordered_json& cluster,
                       const std::vector<std::string>& keys);

/// The numbers that a log of `ranks` ranks determines best: bandwidth of the links that limit it,
/// and, one for each three rows, what its small sizes depend on.
std::vector<std::string> keys_to_fit(const nlohmann::ordered_json& cluster, int ranks,
                                     std::size_t rows);

}  // namespace gradsync
