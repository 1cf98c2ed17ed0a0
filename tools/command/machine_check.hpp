#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "gradsync/predict/accuracy.hpp"

namespace gradsync {

/// A machine's measurements beside what a description of such machines promises.
struct MachineCheck {
  bool is_healthy = true;
  std::string text;  ///< for a person
};

/// Says whether the machine is slower than the description, from which size on and by how much;
/// which single change to the description (adapters, algorithm, GPUDirect, NVLink) would explain
/// it; and the signs of a sick machine that no prediction is needed for (outliers.hpp). `cluster`
/// has all its defaults.
MachineCheck check_machine(AccuracyTable table, const nlohmann::ordered_json& cluster,
                           const std::string& description);

/// The bus bandwidth that a description's links allow an all-reduce of `ranks` ranks.
BytesPerSecond promised_bus_bandwidth(const nlohmann::ordered_json& cluster, std::int64_t ranks);

}  // namespace gradsync
