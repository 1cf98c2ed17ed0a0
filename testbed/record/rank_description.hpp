#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gradsync/ddp/distributed_data_parallel.hpp"
#include "gradsync/models/model.hpp"
#include "gradsync/testbed/record/report_keeper.hpp"
#include "gradsync/testbed/scenario/shard_plan.hpp"

/// The part of a rank's report that describes the job before its first step. Texts of some KB are
/// kept only for ranks that are reported in detail.
namespace gradsync {

/// What a rank plans to do.
struct RankPlan {
  std::int64_t dataset_samples = 0;
  ShardPlan shard;
  std::int64_t first_step = 0;
  std::string config_hash;
};
void describe_plan(ReportKeeper& keeper, const RankPlan& plan, const Model& model);

/// Records the tensors as DDP will see them. Returns those that are checksummed after a step: the
/// ones that `model` trains, under DDP's names, and the buffers.
std::vector<Tensor> describe_tensors(ReportKeeper& keeper, const Model& model,
                                     const Model& ddp_model);

void describe_buckets(ReportKeeper& keeper, const DistributedDataParallel& ddp);

/// Records DDP's current logging data.
void keep_logging_data(ReportKeeper& keeper, const DistributedDataParallel& ddp);

}  // namespace gradsync
