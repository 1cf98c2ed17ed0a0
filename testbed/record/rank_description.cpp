#include "gradsync/testbed/record/rank_description.hpp"

#include <algorithm>
#include <utility>

#include "gradsync/ddp/replica_check.hpp"

namespace gradsync {

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
  std::vector<std::string> lines;
  for (const ParameterPtr& shown : ddp_model.parameters()) {
    lines.push_back(describe_tensor("parameter", shown->name(), shown->data));
    const auto trained =
        std::find_if(model.parameters().begin(), model.parameters().end(),
                     [&](const ParameterPtr& p) { return p->name() == shown->name(); });
    tensors.push_back(trained == model.parameters().end() ? shown->data : (*trained)->data);
  }
  for (const BufferPtr& buffer : ddp_model.buffers()) {
    lines.push_back(describe_tensor("buffer", buffer->name, buffer->data));
    tensors.push_back(buffer->data);
  }
  if (keeper.keeps_detail()) {
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
    for (BucketInfo& bucket : ddp.buckets()) {
      report.buckets.push_back(
          {bucket.index, bucket.bytes, bucket.elements, std::move(bucket.parameters)});
    }
  });
}

}  // namespace gradsync
