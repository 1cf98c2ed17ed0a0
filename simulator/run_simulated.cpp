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

/// Whether every rank has as many steps, of as many samples, as every other.
bool shards_are_alike(const Scenario& scenario) {
  const SamplerSpec& sampler = scenario.sampler;
  return sampler.shard_sizes.empty() &&
         (sampler.pad || sampler.drop_last || scenario.data.samples % scenario.ranks == 0);
}

/// As Gloo's rendezvous does it, whose connections the simulator takes for granted: where a rank
/// has published a wrong address the others fail, and it waits for them in its first collective.
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

/// All that the scenario says of the cluster and what happens to it, whatever the ranks do there.
SimulationOptions options_of(const Scenario& scenario) {
  SimulationOptions options;
  options.fidelity = scenario.fidelity;
  options.communication = scenario.communication;
  options.timeout = scenario.timeout;
  options.communication_threads = static_cast<int>(scenario.gloo.threads);
  options.flight_recorder_size = static_cast<std::size_t>(scenario.output.flight_recorder_size);
  options.faults = scenario.faults;
  options.imperfections = scenario.imperfections;
  return options;
}

/// Ranks that meet as the scenario has it, and then run `body`.
RunOutcome simulate_ranks(const Scenario& scenario, const SimulationOptions& options,
                          const RankBody& body) {
  try {
    return simulate(scenario.cluster, static_cast<int>(scenario.ranks), options,
                    [&](const RankWorld& world, RankReport& report) {
                      const int rank = world.process_group->rank();
                      come_to_rendezvous(scenario.faults, scenario.imperfections, rank,
                                         *world.clock, [&] { world.process_group->stall(); });
                      connect_to_others(scenario, rank);
                      body(world, report);
                    });
  } catch (const ConfigError& error) {
    // The platform knows the place of what it cannot do, and not the file.
    ConfigError::Details details = error.details();
    if (details.file.empty()) details.file = scenario.file;
    throw ConfigError(details);
  }
}

}  // namespace

RunOutcome run_simulated(const Scenario& scenario,
                         const std::function<void(const StepRecord&)>& on_step) {
  const bool computes = scenario.model.kind == ModelSpec::Kind::kTransformer;
  const bool has_payload = computes || scenario.model.replay.payload;
  SimulationOptions options = options_of(scenario);
  options.ranks_are_alike = !has_payload && shards_are_alike(scenario) && scenario.faults.empty() &&
                            !ranks_differ(scenario.imperfections);
  options.device = has_payload ? &cpu_device() : &meta_device();
  options.stack_bytes =
      computes ? SimulationOptions::kComputeStackBytes : SimulationOptions::kReplayStackBytes;
  options.on_step = on_step;
  // Read once: a profile parsed by each of a thousand ranks is a second of work and 60 MB.
  const auto inputs = load_inputs(scenario);
  return simulate_ranks(scenario, options, [&](RankWorld world, RankReport& report) {
    world.inputs = inputs;
    run_rank(scenario, world, report);
  });
}

RunOutcome run_simulated(const Scenario& scenario, const RankBody& body) {
  return simulate_ranks(scenario, options_of(scenario), body);
}

}  // namespace gradsync
