#include "tools/backends.hpp"

#ifdef GRADSYNC_HAVE_SIMGRID
#include "simulator/simulation.hpp"
#endif

namespace gradsync {
namespace {

#ifdef GRADSYNC_HAVE_SIMGRID
RunOutcome run_all_simulated(const Scenario& scenario, const SimulationRequest& request) {
  if (!request.body) return run_simulated(scenario, request.on_step);
  SimulationOptions options;
  options.fidelity = scenario.fidelity;
  options.timeout = scenario.timeout;
  options.communication_threads = static_cast<int>(scenario.gloo.threads);
  return simulate(scenario.cluster, static_cast<int>(scenario.ranks), options, request.body);
}
#endif

}  // namespace

Backend sim_backend() {
  Backend backend;
  backend.name = "sim";
  backend.summary = "the same engine on simulated ranks and links (SimGrid), in one process";
#ifdef GRADSYNC_HAVE_SIMGRID
  backend.run_all = run_all_simulated;
#else
  backend.why_not = GRADSYNC_SIMGRID_WHY_NOT;
#endif
  return backend;
}

}  // namespace gradsync
