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

/// From the words of a scenario to the engine's objects.

/// What a scenario reads from files, or builds once for all ranks of a process. Immutable.
struct RunInputs {
  std::shared_ptr<const Dataset> dataset;
  std::shared_ptr<const ModelProfile> profile;  ///< of a replayed model; else null
  std::string config_hash;  ///< of what in the scenario decides what the ranks do
};

/// Throws ConfigError for a file that is missing or wrong.
std::shared_ptr<const RunInputs> load_inputs(const Scenario& scenario);

/// Of the job's process group; what a backend alone has options for keeps its defaults.
GroupOptions make_group_options(const Scenario& scenario);
/// The hook that the scenario names, if any.
void register_comm_hook(DistributedDataParallel& ddp, const DdpSpec& spec);
std::unique_ptr<Model> make_model(const Scenario& scenario, const RunInputs& inputs, int rank,
                                  int world_size, Device& device);
/// Throws ConfigError for a parameter group that means no parameter, Error(kMisuse) for a parameter
/// that two groups mean.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerSpec& spec,
                                          const std::vector<ParameterPtr>& parameters);

}  // namespace gradsync
