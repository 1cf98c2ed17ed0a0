#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "gradsync/predict/accuracy.hpp"

namespace gradsync {

/// A machine's measurements compared with the description of such a machine.
struct MachineCheck {
  bool is_healthy = true;
  std::string text;  ///< human-readable
};

/// Reports whether the machine is slower than the description, from which size on and by how much;
/// which single change to the description (adapters, algorithm, GPUDirect, NVLink) would explain
/// it; and signs of a faulty machine that need no prediction (outliers.hpp). `cluster` has all its
/// defaults.
MachineCheck check_machine(AccuracyTable table, const nlohmann::ordered_json& cluster,
                           const std::string& description);

/// The signs of outliers.hpp in a table, given the bus bandwidth that the description promises.
std::vector<std::string> outlier_signs_of(const AccuracyTable& table,
                                          const nlohmann::ordered_json& cluster);

/// The bus bandwidth that a description's links allow for an all-reduce over `ranks` ranks.
BytesPerSecond promised_bus_bandwidth(const nlohmann::ordered_json& cluster, std::int64_t ranks);

}  // namespace gradsync
