#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/core/units.hpp"

namespace gradsync {

/// How the ranks of one node are started; names and defaults are torchrun's.
struct LaunchOptions {
  int nproc_per_node = 1;
  int nnodes = 1;
  int node_rank = 0;
  std::string master_addr = "127.0.0.1";
  int master_port = 29500;
  /// One node, a free port: master_addr and master_port are ignored.
  bool standalone = false;
  std::string run_id = "none";

  std::string program;  ///< looked up in PATH
  std::vector<std::string> args;
  std::map<std::string, std::string> env;  ///< for every rank, over the launcher's environment

  /// Serve the store in the launcher of node 0 (TORCHELASTIC_USE_AGENT_STORE=True); then ranks
  /// learn at once when another has died. Without it rank 0 serves the store.
  bool host_store = true;
  /// `[rank]:` before each line of output. Without it the ranks write straight to the launcher's
  /// streams.
  bool prefix_output = true;
  /// Where lines go; unset: the launcher's own standard output and error.
  std::function<void(int rank, bool is_stderr, const std::string& line)> on_line;

  /// After a failure: time for the others to notice and write down what they know.
  Seconds failure_grace{2};
  /// Between SIGTERM and SIGKILL.
  Seconds kill_grace{5};
  /// Ends the job when it runs longer; unset: no limit.
  std::optional<Seconds> deadline;
};

/// How one local rank ended.
struct RankExit {
  int rank = 0;
  int local_rank = 0;
  int pid = 0;
  int exit_code = 0;               ///< where it ended by itself
  int signal = 0;                  ///< where a signal ended it
  Seconds time{0};                 ///< since the start of the launch
  bool ended_by_launcher = false;  ///< after another failure, a signal or the deadline
  bool failed() const noexcept { return exit_code != 0 || signal != 0; }
  /// "exit status 7", "signal 9 (Killed)"
  std::string describe() const;
};

struct LaunchResult {
  std::vector<RankExit> ranks;  ///< local ranks, by local rank
  /// Earliest failure by time that the launcher did not cause.
  std::optional<RankExit> first_failure;
  int forwarded_signal = 0;  ///< the launcher was asked to end by this signal
  bool deadline_ended = false;
  /// What a rank told through the store, "rank 2 timed out ..."; or empty.
  std::string told_failure;

  /// Ranks told of a failure and then did not end by themselves.
  bool has_stuck_ranks() const noexcept;
  bool ok() const noexcept {
    return !first_failure && forwarded_signal == 0 && !deadline_ended && !has_stuck_ranks();
  }
  /// 0; the exit code of the first failure, or 128 + its signal; 128 + the forwarded signal; 124 at
  /// the deadline; 1 where only stuck ranks had to be ended.
  int exit_status() const noexcept;
  /// "rank 2 (local rank 2, pid 4711) failed first, after 1.32 s: signal 9 (Killed)"
  std::string describe() const;
};

/// Starts the ranks of this node, waits for all of them and leaves no process behind.
///
/// Each rank runs in a session of its own, gets torchrun's environment (RANK, LOCAL_RANK,
/// WORLD_SIZE, LOCAL_WORLD_SIZE, GROUP_RANK, GROUP_WORLD_SIZE, ROLE_RANK, ROLE_NAME,
/// ROLE_WORLD_SIZE, MASTER_ADDR, MASTER_PORT, TORCHELASTIC_RUN_ID, TORCHELASTIC_RESTART_COUNT,
/// TORCHELASTIC_MAX_RESTARTS, TORCHELASTIC_USE_AGENT_STORE, and OMP_NUM_THREADS=1 where it is unset
/// and there are several), and is killed by the kernel when the launcher dies. SIGINT, SIGTERM and
/// SIGHUP are forwarded to all ranks. When a rank fails, or tells of a failure through the store
/// of the job's launchers (its process may hang while it cleans up), the others get
/// `failure_grace`, then SIGTERM, `kill_grace`, SIGKILL; processes that a rank left in its session
/// are ended too.
///
/// Blocks signals in the calling thread while it runs; call it from one thread of a process only.
/// Throws Error(kUsage) when the options make no sense or the program cannot be started.
LaunchResult launch(const LaunchOptions& options);

}  // namespace gradsync
