#pragma once

#include <functional>
#include <optional>
#include <string>

namespace gradsync {

/// Where a process stands in a job that a launcher started.
struct RankEnvironment {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  std::string master_addr = "127.0.0.1";  ///< host of the store
  int master_port = 0;
  /// True: a launcher serves the store and every rank is a client. False: rank 0 serves it.
  bool agent_store = false;
  /// Distinguishes jobs and restarts that share one store; part of the prefix of every key.
  std::string job_id = "job";
  std::string source;  ///< who said so, e.g. "RANK and WORLD_SIZE (torchrun)"
};

/// What the command line says; anything that is set wins over the environment.
struct RankFlags {
  std::optional<int> rank;
  std::optional<int> world_size;
  std::optional<int> local_rank;
  std::optional<std::string> master_addr;
  std::optional<int> master_port;
};

/// Value of an environment variable, nothing where it is unset or empty.
using EnvironmentLookup = std::function<std::optional<std::string>(const char* name)>;
std::optional<std::string> process_environment(const char* name);

/// Finds this process's rank, in this order: flags; RANK, WORLD_SIZE, ... (torchrun, gradsync
/// launch); OMPI_COMM_WORLD_* (mpirun of Open MPI); PMI_* (MPICH, Hydra, Slurm's PMI);
/// SLURM_* (srun). Nothing when no launcher is in sight: then `gradsync run` starts the ranks
/// itself.
///
/// MASTER_ADDR and MASTER_PORT are required from torchrun. mpirun and srun do not set them: on one
/// node the address is 127.0.0.1 and the port is derived from the job's id (20000 to 29999); on
/// several nodes MASTER_ADDR must be given.
///
/// Throws Error(kUsage) that names the variable which is missing, not a number, or out of range.
std::optional<RankEnvironment> resolve_rank_environment(
    const RankFlags& flags, const EnvironmentLookup& lookup = process_environment);

}  // namespace gradsync
