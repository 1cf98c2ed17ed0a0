#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gradsync/comm/group_options.hpp"
#include "gradsync/testbed/rank/rank_body.hpp"
#include "gradsync/testbed/result/run_result.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// Runs a scenario in SimGrid: one actor a rank, each of which runs `body`, in this process.
///
/// The outcome has a report for every rank. When nothing can move any more (a deadlock), the run
/// ends at that simulated instant: ranks that have not ended stay kRunning, with their phase and
/// their flight records as they were. When a rank ends with an error, the others learn of it at
/// that instant (kPeerFailed). What the ranks did is in the reports; only what concerns the run as
/// a whole is thrown: ConfigError for a cluster that does not fit, or what `body.load` throws.
///
/// One simulation at a time in a process, any number one after the other. The same scenario gives
/// the same events in the same order and the same simulated times, to the last bit in a fresh
/// process (SimGrid's clock is never set back: see SimEngine).
RunOutcome run_simulated(const Scenario& scenario, const RankBody& body,
                         const RunObserver& observer = {});
/// Trains it.
RunOutcome run_simulated(const Scenario& scenario);

struct SimulationOptions : GroupOptions {
  /// Room on a replaying rank's stack, and on that of one that computes for real (BLAS).
  static constexpr std::size_t kReplayStackBytes = 256 * 1024;
  static constexpr std::size_t kComputeStackBytes = 4 * 1024 * 1024;

  Fidelity fidelity = Fidelity::kAuto;
  CommunicationSpec communication = {};
  /// All ranks do the same at the same times, and have no payload: kAnalytic then runs one actor,
  /// rank 0, for all of them.
  bool ranks_are_alike = false;
  int communication_threads = 1;
  Device* device = nullptr;  ///< of the ranks' parameters; null: the meta device
  /// Of each rank's actor, with a guard page below. Only what is used takes memory.
  std::size_t stack_bytes = kReplayStackBytes;
  std::vector<FaultSpec> faults = {};   ///< those of the world are arranged for
  ImperfectionSpec imperfections = {};  ///< likewise
  bool solve_all_flows = false;         ///< see Transfers
};

/// Runs `rank_main` once for each rank, on its actor on the simulated cluster.
RunOutcome simulate(const ClusterSpec& cluster, int ranks, const SimulationOptions& options,
                    const RankMain& rank_main);

/// Ranks up to which Fidelity::kAuto simulates every message, and those up to which it simulates
/// flows; beyond, it takes the closed form.
inline constexpr int kAutoMessageRanks = 16;
inline constexpr int kAutoFlowRanks = 4096;

}  // namespace gradsync
