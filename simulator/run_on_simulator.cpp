#include "gradsync/simulator/run_on_simulator.hpp"

#include "gradsync/simulator/simulation.hpp"
#include "gradsync/tensor/device.hpp"
#include "gradsync/testbed/record/require_finished.hpp"

namespace gradsync {

Seconds run_on_simulator(int ranks, const std::function<void(ProcessGroup&, Clock&)>& rank,
                         const ClusterSpec& cluster) {
  SimulationOptions options;
  options.device = &cpu_device();
  options.stack_bytes = SimulationOptions::kComputeStackBytes;
  const RunOutcome outcome =
      simulate(cluster, ranks, options, [&rank](const RankRuntime& runtime, RankReport&) {
        rank(*runtime.process_group, *runtime.clock);
        runtime.process_group->shutdown();
      });
  require_finished(outcome.reports);
  return outcome.simulated.value();
}

}  // namespace gradsync
