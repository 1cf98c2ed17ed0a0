#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/core/units.hpp"

namespace gradsync {

/// How to start the ranks of one node, with torchrun's names and defaults.
struct LaunchOptions {
  int nproc_per_node = 1;
  int nnodes = 1;
  int node_rank = 0;
  std::string master_addr = "127.0.0.1";
  int master_port = 29500;
  /// Single node on a free port: ignores master_addr and master_port.
  bool standalone = false;
  std::string run_id = "none";

  std::string program;  ///< looked up in PATH
  std::vector<std::string> args;
  std::map<std::string, std::string> env;  ///< for every rank, overrides the launcher's environment

  /// Host the store in the launcher of node 0 (TORCHELASTIC_USE_AGENT_STORE=True), so that ranks
  /// learn at once of a dead rank. Otherwise rank 0 hosts the store.
  bool host_store = true;
  /// Prefix each output line with `[rank]:`. Otherwise the ranks write directly to the launcher's
  /// streams.
  bool prefix_output = true;
  /// Receives each output line; unset: the launcher's own standard output and error.
  std::function<void(int rank, bool is_stderr, const std::string& line)> on_line;

  /// After a failure: time for the other ranks to notice it and write their reports.
  Seconds failure_grace{2};
  /// Time between SIGTERM and SIGKILL.
  Seconds kill_grace{5};
  /// Longest run time of the job; unset: no limit.
  std::optional<Seconds> deadline;
};

/// The end of one local rank.
struct RankExit {
  int rank = 0;
  int local_rank = 0;
  int pid = 0;
  int exit_code = 0;               ///< if it exited by itself
  int signal = 0;                  ///< if a signal ended it
  Seconds time{0};                 ///< since the start of the launch
  bool ended_by_launcher = false;  ///< after another failure, a signal or the deadline
  bool failed() const noexcept { return exit_code != 0 || signal != 0; }
  /// "exit status 7", "signal 9 (Killed)"
  std::string describe() const;
};

struct LaunchResult {
  std::vector<RankExit> ranks;  ///< by local rank
  /// The earliest failure that the launcher did not cause.
  std::optional<RankExit> first_failure;
  int forwarded_signal = 0;  ///< the signal that asked the launcher to stop
  bool deadline_ended = false;
  /// A failure reported through the store, "rank 2 timed out ..."; may be empty.
  std::string told_failure;

  /// True if ranks reported a failure but did not exit by themselves.
  bool has_stuck_ranks() const noexcept;
  bool ok() const noexcept {
    return !first_failure && forwarded_signal == 0 && !deadline_ended && !has_stuck_ranks();
  }
  /// 0; the exit code of the first failure, or 128 + its signal; 128 + the forwarded signal; 124 at
  /// the deadline; 1 if only stuck ranks had to be killed.
  int exit_status() const noexcept;
  /// "rank 2 (local rank 2, pid 4711) failed first, after 1.32 s: signal 9 (Killed)"
  std::string describe() const;
};

/// Starts the ranks of this node, waits for all of them and leaves no process behind.
///
/// Each rank runs in its own session with torchrun's environment (RANK, LOCAL_RANK, WORLD_SIZE,
/// LOCAL_WORLD_SIZE, GROUP_RANK, GROUP_WORLD_SIZE, ROLE_RANK, ROLE_NAME, ROLE_WORLD_SIZE,
/// MASTER_ADDR, MASTER_PORT, TORCHELASTIC_RUN_ID, TORCHELASTIC_RESTART_COUNT,
/// TORCHELASTIC_MAX_RESTARTS, TORCHELASTIC_USE_AGENT_STORE, and OMP_NUM_THREADS=1 if it is unset
/// and there are several ranks), and the kernel kills it if the launcher dies. SIGINT, SIGTERM and
/// SIGHUP are forwarded to all ranks. When a rank fails, or reports a failure through the
/// launcher's store (its process may hang in its clean-up), the other ranks get `failure_grace`,
/// then SIGTERM, then after `kill_grace` SIGKILL. Processes that a rank left behind in its session
/// are killed too.
///
/// Blocks signals in the calling thread while it runs; call it from only one thread of a process.
/// Throws Error(kUsage) if the options are invalid or the program cannot be started.
LaunchResult launch(const LaunchOptions& options);

}  // namespace gradsync
