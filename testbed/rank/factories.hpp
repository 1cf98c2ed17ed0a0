#pragma once

#include <memory>

#include "gradsync/comm/group_options.hpp"
#include "gradsync/core/clock.hpp"
#include "gradsync/data/data_loader.hpp"
#include "gradsync/data/dataset.hpp"
#include "gradsync/ddp/distributed_data_parallel.hpp"
#include "gradsync/models/model.hpp"
#include "gradsync/models/profile.hpp"
#include "gradsync/optim/optimizer.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// Creates the engine's objects from a scenario.

/// Everything that a scenario loads from files or builds once per process for all ranks. Immutable.
struct RunInputs {
  std::shared_ptr<const Dataset> dataset;
  std::shared_ptr<const ModelProfile> profile;  ///< only for a replayed model; otherwise null
  std::string config_hash;  ///< over the settings that determine what the ranks do
};

/// Throws ConfigError for a missing or invalid file.
std::shared_ptr<const RunInputs> load_inputs(const Scenario& scenario);

/// Options of the job's process group; backend-specific options keep their defaults.
GroupOptions make_group_options(const Scenario& scenario);
/// Registers the hook named by the scenario, if any.
void register_comm_hook(DistributedDataParallel& ddp, const DdpSpec& spec);
std::unique_ptr<Model> make_model(const Scenario& scenario, const RunInputs& inputs, int rank,
                                  int world_size, Device& device);
/// Throws ConfigError for a parameter group that matches no parameter, and Error(kMisuse) for a
/// parameter matched by two groups.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerSpec& spec,
                                          const std::vector<ParameterPtr>& parameters);

}  // namespace gradsync
