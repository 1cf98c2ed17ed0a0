#pragma once

#include <string>
#include <vector>

namespace gradsync {

/// What a backend can do: the facts by which a scenario is checked, the same whether a build has
/// the backend or not. A new backend is a row of `backend_descriptors` and the code that runs it.
struct BackendDescriptor {
  std::string name;     ///< as in the scenario
  std::string summary;  ///< one line for `gradsync backends`

  /// Ranks, network and time are simulated, all ranks in one process; else a rank is a process, and
  /// what it computes takes the time that it takes.
  bool is_simulated = false;
  /// ReduceOp::kAverage. A simulated backend averages where the library that it simulates does.
  bool averages = false;
  bool changes_links = false;      ///< links can be slow, down, lossy or shared with other traffic
  bool has_device_slots = false;   ///< the number of collectives on a device can be bounded
  bool chooses_addresses = false;  ///< the address that a rank publishes is ours to choose
};

const std::vector<BackendDescriptor>& backend_descriptors();
std::vector<std::string> backend_names();

/// Throws Error(kBackendUnavailable), which names the backends that there are.
const BackendDescriptor& backend_descriptor(const std::string& name);

}  // namespace gradsync
