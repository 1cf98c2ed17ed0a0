#pragma once

#include <cstdint>

#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// The samples of a rank and the resulting steps.
struct ShardPlan {
  std::int64_t samples = 0;          ///< per epoch
  std::int64_t steps_per_epoch = 0;  ///< the last one may have a smaller batch
  std::int64_t steps = 0;            ///< in the run: all epochs, limited by max_steps
};

/// Throws Error(kMisuse) as DistributedSampler does.
ShardPlan plan_shard(const Scenario& scenario, std::int64_t dataset_size, int rank, int world_size);

}  // namespace gradsync
