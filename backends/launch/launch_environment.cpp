#include "gradsync/backends/launch/launch_environment.hpp"

#include "gradsync/backends/launch/child_process.hpp"

namespace gradsync {

std::map<std::string, std::string> rank_variables(const LaunchOptions& options, int local_rank,
                                                  const std::string& host, int port) {
  const std::string rank = std::to_string(options.node_rank * options.nproc_per_node + local_rank);
  const std::string world = std::to_string(options.nnodes * options.nproc_per_node);
  std::map<std::string, std::string> env = current_environment();
  // torchrun, too, leaves these two alone if the user has set them.
  if (options.nproc_per_node > 1) env.try_emplace("OMP_NUM_THREADS", "1");
  env.try_emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  const std::map<std::string, std::string> ours = {
      {"RANK", rank},
      {"LOCAL_RANK", std::to_string(local_rank)},
      {"WORLD_SIZE", world},
      {"LOCAL_WORLD_SIZE", std::to_string(options.nproc_per_node)},
      {"GROUP_RANK", std::to_string(options.node_rank)},
      {"GROUP_WORLD_SIZE", std::to_string(options.nnodes)},
      {"ROLE_RANK", rank},
      {"ROLE_WORLD_SIZE", world},
      {"ROLE_NAME", "default"},
      {"MASTER_ADDR", host},
      {"MASTER_PORT", std::to_string(port)},
      {"TORCHELASTIC_RUN_ID", options.run_id},
      {"TORCHELASTIC_RESTART_COUNT", "0"},
      {"TORCHELASTIC_MAX_RESTARTS", "0"},
      {"TORCHELASTIC_USE_AGENT_STORE", options.host_store ? "True" : "False"},
  };
  for (const auto& [name, value] : ours) env[name] = value;
  for (const auto& [name, value] : options.env) env[name] = value;
  return env;
}

}  // namespace gradsync
