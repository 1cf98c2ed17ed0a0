#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gradsync/ddp/distributed_data_parallel.hpp"
#include "gradsync/models/model.hpp"
#include "gradsync/testbed/record/report_keeper.hpp"
#include "gradsync/testbed/scenario/shard_plan.hpp"

/// What a rank's report says of the job before its first step. Texts of some KB are kept only for
/// the ranks that are reported in detail.
namespace gradsync {

/// What a rank is about to do.
struct RankPlan {
  std::int64_t dataset_samples = 0;
  ShardPlan shard;
  std::int64_t first_step = 0;
  std::string config_hash;
};
void describe_plan(ReportKeeper& keeper, const RankPlan& plan, const Model& model);

/// The tensors as DDP is about to be shown them. Returns those that are summed up after a step: the
/// ones that `model` trains, under the names that DDP knows, and the buffers.
std::vector<Tensor> describe_tensors(ReportKeeper& keeper, const Model& model,
                                     const Model& ddp_model);

void describe_buckets(ReportKeeper& keeper, const DistributedDataParallel& ddp);

/// What DDP knows of itself by now.
void keep_logging_data(ReportKeeper& keeper, const DistributedDataParallel& ddp);

}  // namespace gradsync
