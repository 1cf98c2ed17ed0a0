#include "gradsync/testbed/record/rank_description.hpp"

#include <algorithm>
#include <utility>

#include "gradsync/ddp/replica_check.hpp"

namespace gradsync {
namespace {

/// The tensor that is trained under the name of `shown`, which DDP sees at position `i`.
const Tensor& trained_tensor(const std::vector<ParameterPtr>& trained, const ParameterPtr& shown,
                             std::size_t i) {
  if (i < trained.size() && trained[i] == shown) return shown->data;
  const auto found = std::ranges::find(trained, shown->name(), &Parameter::name);
  return found == trained.end() ? shown->data : (*found)->data;
}

}  // namespace

void describe_plan(ReportKeeper& keeper, const RankPlan& plan, const Model& model) {
  keeper.update([&](RankReport& report) {
    report.dataset_samples = plan.dataset_samples;
    report.samples_planned = plan.shard.samples;
    report.steps_planned = plan.shard.steps;
    report.steps_completed = plan.first_step;
    report.first_step = plan.first_step;
    report.config_hash = plan.config_hash;
    for (const ParameterPtr& parameter : model.parameters()) {
      ++report.parameter_tensors;
      report.parameter_count += parameter->data.numel();
      report.parameter_bytes += parameter->data.nbytes();
    }
  });
}

std::vector<Tensor> describe_tensors(ReportKeeper& keeper, const Model& model,
                                     const Model& ddp_model) {
  std::vector<Tensor> tensors;
  const std::vector<ParameterPtr>& shown = ddp_model.parameters();
  if (!shown.front()->data.is_meta()) {
    for (std::size_t i = 0; i < shown.size(); ++i) {
      tensors.push_back(trained_tensor(model.parameters(), shown[i], i));
    }
    for (const BufferPtr& buffer : ddp_model.buffers()) tensors.push_back(buffer->data);
  }
  if (keeper.keeps_detail()) {
    std::vector<std::string> lines;
    for (const ParameterPtr& parameter : shown) {
      lines.push_back(describe_tensor("parameter", parameter->name(), parameter->data));
    }
    for (const BufferPtr& buffer : ddp_model.buffers()) {
      lines.push_back(describe_tensor("buffer", buffer->name, buffer->data));
    }
    keeper.update([&](RankReport& report) {
      report.tensors = std::move(lines);
      report.buffer_count = std::ssize(ddp_model.buffers());
    });
  }
  return tensors;
}

void keep_logging_data(ReportKeeper& keeper, const DistributedDataParallel& ddp) {
  if (!keeper.keeps_detail()) return;
  keeper.update([&](RankReport& report) { report.ddp_logging = ddp.logging_data(); });
}

void describe_buckets(ReportKeeper& keeper, const DistributedDataParallel& ddp) {
  keep_logging_data(keeper, ddp);
  keeper.update([&](RankReport& report) {
    report.comm_hook = ddp.comm_hook();
    report.rebuilt_buckets = ddp.has_rebuilt_buckets();
    report.buckets.clear();
    const bool keeps_names = keeper.keeps_detail() || report.rank == 0;
    for (BucketInfo& bucket : ddp.buckets()) {
      if (!keeps_names) bucket.parameters.clear();
      report.buckets.push_back(
          {bucket.index, bucket.bytes, bucket.elements, std::move(bucket.parameters)});
      report.buckets.back().parameters.shrink_to_fit();
    }
  });
}

}  // namespace gradsync
