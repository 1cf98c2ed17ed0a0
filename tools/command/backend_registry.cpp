#include "tools/command/backend_registry.hpp"

#include <algorithm>

#include "gradsync/core/error.hpp"
#include "tools/command/backends.hpp"
#include "tools/command/rank_processes.hpp"
#include "tools/command/scratch_directory.hpp"

namespace gradsync {

RunOutcome Backend::run(const Scenario& scenario, const RankBody& body, const RunObserver& observer,
                        const std::string& directory) const {
  if (descriptor.is_simulated) return simulate(scenario, body, observer);
  if (!directory.empty()) return run_rank_processes(scenario, body, observer, directory);
  const ScratchDirectory scratch("gradsync-run");
  return run_rank_processes(scenario, body, observer, scratch.path());
}

const std::vector<Backend>& backends() {
  static const std::vector<Backend> list = {gloo_backend(), nccl_backend(), sim_backend()};
  return list;
}

const Backend& find_backend(const std::string& name) {
  const BackendDescriptor& descriptor = backend_descriptor(name);
  return *std::find_if(backends().begin(), backends().end(), [&](const Backend& backend) {
    return backend.descriptor.name == descriptor.name;
  });
}

const Backend& require_backend(const std::string& name) {
  const Backend& backend = find_backend(name);
  if (const std::string why_not = backend.why_not_here(); !why_not.empty()) {
    throw Error(ErrorCode::kBackendUnavailable, "the backend \"" + name + "\" is not available: " +
                                                    why_not + " (see gradsync backends)");
  }
  return backend;
}

}  // namespace gradsync
