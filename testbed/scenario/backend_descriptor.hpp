#pragma once

#include <string>
#include <vector>

namespace gradsync {

/// The capabilities of a backend, against which scenarios are checked, whether or not the build
/// includes the backend. To add a backend, add a row to `backend_descriptors` and the code that
/// runs it.
struct BackendDescriptor {
  std::string name;     ///< as in the scenario
  std::string summary;  ///< one line for `gradsync backends`

  /// True if ranks, network and time are simulated in one process; otherwise each rank is a process
  /// whose compute takes real time.
  bool is_simulated = false;
  /// Supports ReduceOp::kAverage. A simulated backend supports it if the simulated library does.
  bool averages = false;
  bool changes_links = false;      ///< links can be slow, down, lossy or shared with other traffic
  bool has_device_slots = false;   ///< the number of collectives on a device can be limited
  bool chooses_addresses = false;  ///< the address that a rank publishes can be chosen
};

const std::vector<BackendDescriptor>& backend_descriptors();
std::vector<std::string> backend_names();

/// Throws Error(kBackendUnavailable) listing the known backends.
const BackendDescriptor& backend_descriptor(const std::string& name);

}  // namespace gradsync
