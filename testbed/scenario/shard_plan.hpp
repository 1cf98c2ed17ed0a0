#pragma once

#include <cstdint>

#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// Samples of a rank, and the steps that it takes with them.
struct ShardPlan {
  std::int64_t samples = 0;          ///< an epoch
  std::int64_t steps_per_epoch = 0;  ///< the last one may be of a smaller batch
  std::int64_t steps = 0;            ///< of the run: all epochs, cut by max_steps
};

/// Throws Error(kMisuse) as DistributedSampler does.
ShardPlan plan_shard(const Scenario& scenario, std::int64_t dataset_size, int rank, int world_size);

}  // namespace gradsync
