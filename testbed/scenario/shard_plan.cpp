#include "gradsync/testbed/scenario/shard_plan.hpp"

#include <algorithm>

#include "gradsync/data/distributed_sampler.hpp"

namespace gradsync {

ShardPlan plan_shard(const Scenario& scenario, std::int64_t dataset_size, int rank,
                     int world_size) {
  const DistributedSampler sampler(dataset_size, world_size, rank, scenario.sampler);
  const std::int64_t batch = scenario.train.batch_size;
  ShardPlan plan;
  plan.samples = sampler.num_samples();
  const std::int64_t samples_per_step = batch * scenario.train.accumulate_steps;
  plan.steps_per_epoch = (plan.samples + samples_per_step - 1) / samples_per_step;
  plan.steps = plan.steps_per_epoch * scenario.train.epochs;
  if (scenario.train.max_steps) plan.steps = std::min(plan.steps, *scenario.train.max_steps);
  return plan;
}

}  // namespace gradsync
