#include "gradsync/backends/store/rank_environment.hpp"

#include <charconv>
#include <cstdint>
#include <cstdlib>

#include <fmt/format.h>

#include "gradsync/backends/store/stable_hash.hpp"
#include "gradsync/core/error.hpp"

namespace gradsync {
namespace {

/// The variable names of one launcher; null for a value it does not set.
struct Dialect {
  const char* launcher;
  const char* rank;
  const char* world_size;
  const char* local_rank;
  const char* local_world_size;
  const char* job;
  const char* step;
  /// Set by the launcher only for the processes it starts; null: use `rank`.
  const char* marker;
};

constexpr Dialect kTorchrun{"torchrun",
                            "RANK",
                            "WORLD_SIZE",
                            "LOCAL_RANK",
                            "LOCAL_WORLD_SIZE",
                            "TORCHELASTIC_RUN_ID",
                            "TORCHELASTIC_RESTART_COUNT",
                            nullptr};

/// In the order of the lookup. srun's variables come last, because mpirun inside a Slurm job sees
/// those of the batch step. A batch script also has SLURM_PROCID, where it is not a rank; only srun
/// sets SLURM_STEP_ID.
constexpr Dialect kMpiDialects[] = {
    {"mpirun (Open MPI)", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE", nullptr,
     nullptr},
    {"PMI (MPICH, Hydra)", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS",
     "PMI_JOBID", nullptr, nullptr},
    {"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE",
     "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_STEP_ID"},
};

class Resolver {
 public:
  explicit Resolver(const EnvironmentLookup& lookup) : lookup_(lookup) {}

  std::optional<std::string> text(const char* name) const {
    return name == nullptr ? std::nullopt : lookup_(name);
  }

  std::optional<int> number(const char* name) const {
    const auto value = text(name);
    if (!value) return std::nullopt;
    int result = 0;
    const char* end = value->data() + value->size();
    const auto parsed = std::from_chars(value->data(), end, result);
    if (parsed.ec != std::errc() || parsed.ptr != end || result < 0) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("environment: {} is \"{}\", expected a whole number", name, *value));
    }
    return result;
  }

  int required(const char* name, const char* because) const {
    if (const auto value = number(name)) return *value;
    throw missing(name, because);
  }

  static Error missing(const char* name, const std::string& because) {
    return Error(ErrorCode::kUsage,
                 fmt::format("environment: {} is not set, but {}; set it or start the ranks with "
                             "`gradsync launch`, torchrun, mpirun or srun",
                             name, because));
  }

 private:
  const EnvironmentLookup& lookup_;
};

std::string job_id(const Resolver& env, const Dialect& dialect) {
  const auto job = env.text(dialect.job);
  const auto step = env.text(dialect.step);
  if (!job) return "job";
  return step ? *job + "." + *step : *job;
}

/// The fields that torchrun and the explicit flags share.
void take_master(const Resolver& env, RankEnvironment& result, const std::string& because) {
  const auto addr = env.text("MASTER_ADDR");
  if (!addr) throw Resolver::missing("MASTER_ADDR", because);
  result.master_addr = *addr;
  result.master_port = env.required("MASTER_PORT", because.c_str());
}

RankEnvironment from_torchrun(const Resolver& env) {
  RankEnvironment result;
  result.rank = env.required("RANK", "WORLD_SIZE is");
  result.world_size = env.required("WORLD_SIZE", "RANK is");
  result.local_rank = env.number("LOCAL_RANK").value_or(0);
  result.local_world_size = env.number("LOCAL_WORLD_SIZE").value_or(1);
  take_master(env, result, "RANK and WORLD_SIZE are");
  result.agent_store = env.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  result.job_id = job_id(env, kTorchrun);
  result.source = "RANK and WORLD_SIZE (torchrun)";
  return result;
}

RankEnvironment from_mpi(const Resolver& env, const Dialect& dialect) {
  RankEnvironment result;
  result.rank = env.required(dialect.rank, "this is a process of an MPI or Slurm job");
  const std::string rank_is_set = fmt::format("{} is", dialect.rank);
  result.world_size = env.required(dialect.world_size, rank_is_set.c_str());
  result.local_rank = env.number(dialect.local_rank).value_or(result.rank);
  result.local_world_size = env.number(dialect.local_world_size).value_or(result.world_size);
  result.job_id = job_id(env, dialect);
  result.source = fmt::format("{} ({})", dialect.rank, dialect.launcher);
  const bool one_node =
      result.local_world_size == result.world_size && env.number("SLURM_NNODES").value_or(1) == 1;
  if (const auto addr = env.text("MASTER_ADDR")) {
    result.master_addr = *addr;
  } else if (!one_node) {
    throw Resolver::missing("MASTER_ADDR", "the job has several nodes and " + rank_is_set);
  }
  constexpr int kFirstPort = 20000;
  constexpr std::uint32_t kPorts = 10000;
  result.master_port =
      env.number("MASTER_PORT")
          .value_or(kFirstPort + static_cast<int>(stable_hash(result.job_id) % kPorts));
  return result;
}

void check(const RankEnvironment& e) {
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::kUsage, fmt::format("{}: {}", e.source, what));
  };
  if (e.world_size < 1) fail(fmt::format("a world of {} ranks", e.world_size));
  if (e.rank >= e.world_size) {
    fail(fmt::format("rank {} in a world of {} ranks; ranks count from 0", e.rank, e.world_size));
  }
  if (e.master_port < 1 || e.master_port > 65535) {
    fail(fmt::format("MASTER_PORT {} is not a port (1 to 65535)", e.master_port));
  }
}

}  // namespace

std::optional<std::string> process_environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::optional<RankEnvironment> resolve_rank_environment(const RankFlags& flags,
                                                        const EnvironmentLookup& lookup) {
  const Resolver env(lookup);
  std::optional<RankEnvironment> result;
  if (flags.rank || flags.world_size) {
    if (!flags.rank || !flags.world_size) {
      throw Error(ErrorCode::kUsage, "--rank and --world-size must be given together");
    }
    result.emplace();
    result->rank = *flags.rank;
    result->world_size = *flags.world_size;
    result->local_rank = flags.local_rank.value_or(*flags.rank);
    result->local_world_size = *flags.world_size;
    result->master_port = env.number("MASTER_PORT").value_or(29500);
    if (const auto addr = env.text("MASTER_ADDR")) result->master_addr = *addr;
    result->source = "--rank and --world-size";
  } else if (env.text("RANK") || env.text("WORLD_SIZE")) {
    result = from_torchrun(env);
  } else {
    for (const Dialect& dialect : kMpiDialects) {
      if (!env.text(dialect.marker == nullptr ? dialect.rank : dialect.marker)) continue;
      result = from_mpi(env, dialect);
      break;
    }
  }
  if (!result) return std::nullopt;
  if (flags.local_rank) result->local_rank = *flags.local_rank;
  if (flags.master_addr) result->master_addr = *flags.master_addr;
  if (flags.master_port) result->master_port = *flags.master_port;
  check(*result);
  return result;
}

}  // namespace gradsync
