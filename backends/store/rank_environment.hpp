#pragma once

#include <functional>
#include <optional>
#include <string>

namespace gradsync {

/// A process's place in a job, as given by its launcher.
struct RankEnvironment {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  std::string master_addr = "127.0.0.1";  ///< host of the store
  int master_port = 0;
  /// True: a launcher hosts the store and every rank is a client. False: rank 0 hosts it.
  bool agent_store = false;
  /// Distinguishes jobs and restarts that share one store; part of every key's prefix.
  std::string job_id = "job";
  std::string source;  ///< origin of the values, e.g. "RANK and WORLD_SIZE (torchrun)"
};

/// Command-line flags; set values override the environment.
struct RankFlags {
  std::optional<int> rank;
  std::optional<int> world_size;
  std::optional<int> local_rank;
  std::optional<std::string> master_addr;
  std::optional<int> master_port;
};

/// Value of an environment variable; nullopt if unset or empty.
using EnvironmentLookup = std::function<std::optional<std::string>(const char* name)>;
std::optional<std::string> process_environment(const char* name);

/// Determines this process's rank, from the first of: flags; RANK, WORLD_SIZE, ... (torchrun,
/// gradsync launch); OMPI_COMM_WORLD_* (mpirun of Open MPI); PMI_* (MPICH, Hydra, Slurm's PMI);
/// SLURM_* (srun). Returns nullopt without a launcher; `gradsync run` then starts the ranks itself.
///
/// torchrun must set MASTER_ADDR and MASTER_PORT. mpirun and srun do not set them: on a single node
/// the address is 127.0.0.1 and the port is derived from the job id (20000 to 29999); on several
/// nodes MASTER_ADDR must be set.
///
/// Throws Error(kUsage) naming the variable that is missing, not a number, or out of range.
std::optional<RankEnvironment> resolve_rank_environment(
    const RankFlags& flags, const EnvironmentLookup& lookup = process_environment);

}  // namespace gradsync
