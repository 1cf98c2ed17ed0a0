#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "gradsync/comm/group_options.hpp"
#include "gradsync/simulator/plan/gpu_costs.hpp"
#include "gradsync/testbed/rank/rank_body.hpp"
#include "gradsync/testbed/result/run_result.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// Runs a scenario in SimGrid: one actor per rank, each of which runs `body`, in this process.
///
/// The outcome has a report for every rank. If nothing can make progress any more (a deadlock), the
/// run ends at that simulated time: ranks that have not ended stay kRunning, with their phase and
/// flight records as they were. If a rank ends with an error, the others learn of it at the same
/// time (kPeerFailed). The reports hold what the ranks did; only errors of the run as a whole are
/// thrown: ConfigError for a cluster that does not fit, or whatever `body.load` throws.
///
/// One simulation at a time per process, any number in sequence. The same scenario gives the same
/// events in the same order and the same simulated times, bit for bit in a fresh process (SimGrid's
/// clock is never reset: see SimEngine).
RunOutcome run_simulated(const Scenario& scenario, const RankBody& body,
                         const RunObserver& observer = {});
/// Trains the scenario.
RunOutcome run_simulated(const Scenario& scenario);

struct SimulationOptions : GroupOptions {
  /// Stack size of a replaying rank, and of one that really computes (BLAS).
  static constexpr std::size_t kReplayStackBytes = 256 * 1024;
  static constexpr std::size_t kComputeStackBytes = 4 * 1024 * 1024;

  Fidelity fidelity = Fidelity::kAuto;
  CommunicationSpec communication = {};
  /// All ranks do the same at the same times and have no payload: kAnalytic then runs one actor,
  /// rank 0, on behalf of all.
  bool ranks_are_alike = false;
  int communication_threads = 1;
  Device* device = nullptr;  ///< of the ranks' parameters; null: the meta device
  /// Per rank actor, with a guard page below. Only the used part takes memory.
  std::size_t stack_bytes = kReplayStackBytes;
  std::vector<FaultSpec> faults = {};   ///< only those of the simulated network and devices
  ImperfectionSpec imperfections = {};  ///< likewise
  GpuCosts gpu_costs = {};              ///< of DDP on the ranks' GPUs
  bool solve_all_flows = false;         ///< see Transfers
};

/// Runs `rank_main` once per rank, on the rank's actor on the simulated cluster.
RunOutcome simulate(const ClusterSpec& cluster, int ranks, const SimulationOptions& options,
                    const RankMain& rank_main);

/// Calls `callback` with the duration of each advance of the simulated time, in this and all later
/// simulations of the process: SimGrid never forgets a callback.
void on_time_advance(std::function<void(Seconds)> callback);

/// Fidelity::kAuto simulates messages up to the first number of ranks, flows up to the second, and
/// is analytic beyond.
inline constexpr int kAutoMessageRanks = 16;
inline constexpr int kAutoFlowRanks = 4096;

}  // namespace gradsync
