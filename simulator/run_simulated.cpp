#include <fmt/format.h>

#include "gradsync/comm/comm_error.hpp"
#include "gradsync/core/rank_list.hpp"
#include "gradsync/simulator/simulation.hpp"
#include "gradsync/tensor/device.hpp"
#include "gradsync/testbed/faults/rank_imperfections.hpp"
#include "gradsync/testbed/faults/rendezvous_fault.hpp"
#include "gradsync/testbed/rank/factories.hpp"

namespace gradsync {

namespace {

/// Models the failure of Gloo's rendezvous, whose connections the simulator otherwise takes for
/// granted: if a rank has published a wrong address, the others fail, and it waits for them in its
/// first collective.
void connect_to_others(const Scenario& scenario, int rank) {
  const std::vector<int> wrong =
      ranks_with_wrong_address(scenario.faults, static_cast<int>(scenario.ranks));
  if (wrong.empty() || wrong == std::vector{rank}) return;
  std::vector<int> others = wrong;
  std::erase(others, rank);
  throw ConnectError(
      fmt::format("rank {}: could not connect to {} at the published address 0.0.0.0, "
                  "which leads nowhere but to this machine",
                  rank, rank_list(others)),
      others);
}

/// Collects the scenario's cluster, its faults and imperfections, and the needs of the body.
SimulationOptions options_for(const Scenario& scenario, const RankBody& body) {
  SimulationOptions options{make_group_options(scenario)};
  options.fidelity = scenario.fidelity;
  options.communication = scenario.communication;
  options.communication_threads = static_cast<int>(scenario.gloo.threads);
  options.faults = scenario.faults;
  options.imperfections = scenario.imperfections;
  options.gpu_costs = gpu_costs(scenario.cluster, static_cast<int>(scenario.ranks),
                                scenario.ddp.gradient_as_bucket_view);
  options.ranks_are_alike = body.is_alike_on_all_ranks && scenario.faults.empty() &&
                            !ranks_differ(scenario.imperfections);
  options.device = body.has_payload ? &cpu_device() : &meta_device();
  options.stack_bytes =
      body.computes ? SimulationOptions::kComputeStackBytes : SimulationOptions::kReplayStackBytes;
  return options;
}

}  // namespace

RunOutcome run_simulated(const Scenario& scenario, const RankBody& body,
                         const RunObserver& observer) {
  const RankMain rank_main = body.load(scenario, observer);
  try {
    return simulate(scenario.cluster, static_cast<int>(scenario.ranks), options_for(scenario, body),
                    [&](const RankRuntime& runtime, RankReport& report) {
                      const int rank = runtime.process_group->rank();
                      come_to_rendezvous(scenario.faults, scenario.imperfections, rank,
                                         *runtime.clock, [&] { runtime.process_group->stall(); });
                      connect_to_others(scenario, rank);
                      rank_main(runtime, report);
                    });
  } catch (const ConfigError& error) {
    // The platform knows the location of an unsupported value, but not the file.
    ConfigError::Details details = error.details();
    if (details.file.empty()) details.file = scenario.file;
    throw ConfigError(details);
  }
}

RunOutcome run_simulated(const Scenario& scenario) {
  return run_simulated(scenario, training_body(scenario));
}

}  // namespace gradsync
