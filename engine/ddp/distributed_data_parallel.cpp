#include "engine/ddp/distributed_data_parallel.hpp"

#include <fmt/format.h>

#include "engine/core/error.hpp"
#include "engine/ddp/reducer.hpp"
#include "engine/ddp/replica_check.hpp"
#include "engine/ddp/state_broadcast.hpp"

namespace gradsync {
namespace {

/// An identity on the tape through which every gradient of an output enters the model. It tells the
/// reducer that a backward pass has begun that will get there.
class BackwardBegins final : public Node {
 public:
  BackwardBegins(NodePtr output, std::weak_ptr<Reducer> reducer)
      : Node("DdpBackwardBegins", {std::move(output)}), reducer_(std::move(reducer)) {}

  std::vector<Tensor> backward(Tensor grad_output, BackwardPass& pass) override {
    if (const auto reducer = reducer_.lock()) reducer->reduce_after_backward(pass);
    return {std::move(grad_output)};
  }

 private:
  std::weak_ptr<Reducer> reducer_;
};

std::vector<ParameterPtr> trainable_parameters(const Model& model, int rank) {
  std::vector<ParameterPtr> trainable;
  for (const ParameterPtr& parameter : model.parameters()) {
    if (parameter->requires_grad()) trainable.push_back(parameter);
  }
  if (trainable.empty()) {
    throw Error(
        ErrorCode::kMisuse,
        fmt::format("rank {}: DistributedDataParallel is not needed when a module doesn't have "
                    "any parameter that requires a gradient",
                    rank));
  }
  return trainable;
}

/// Everything on which ranks must agree for their collectives to meet.
std::vector<std::string> describe_replica(const Model& model, const DdpOptions& options) {
  std::vector<std::string> lines;
  for (const ParameterPtr& parameter : model.parameters()) {
    const char* kind = parameter->requires_grad() ? "parameter" : "frozen parameter";
    lines.push_back(describe_tensor(kind, parameter->name(), parameter->data));
  }
  for (const BufferPtr& buffer : model.buffers()) {
    lines.push_back(describe_tensor("buffer", buffer->name, buffer->data));
  }
  const BucketCaps caps = bucket_caps(options);
  lines.push_back(fmt::format("option find_unused_parameters={}", options.find_unused_parameters));
  lines.push_back(fmt::format("option static_graph={}", options.static_graph));
  lines.push_back(fmt::format("bucket caps of {} and {} bytes", caps.first, caps.others));
  return lines;
}

std::vector<Tensor> state_of(const Model& model) {
  std::vector<Tensor> state;
  for (const ParameterPtr& parameter : model.parameters()) state.push_back(parameter->data);
  for (const BufferPtr& buffer : model.buffers()) state.push_back(buffer->data);
  return state;
}

}  // namespace

DistributedDataParallel::DistributedDataParallel(Model& model, ProcessGroup& group,
                                                 const DdpOptions& options)
    : model_(&model), group_(&group), options_(options) {
  std::vector<ParameterPtr> trainable = trainable_parameters(model, group.rank());
  check_replicas(group, trainable, describe_replica(model, options), position_);
  broadcast_coalesced(group, state_of(model), 0, position_.options(Phase::kInit, "parameters"));

  reducer_ = std::make_shared<Reducer>(std::move(trainable), group, position_, options);
  const auto& parameters = reducer_->parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    // Weak: parameters may outlive DDP, and their hooks with them.
    parameters[i]->add_gradient_hook(
        [reducer = std::weak_ptr(reducer_), i](Parameter&, BackwardPass& pass) {
          if (const auto alive = reducer.lock()) alive->on_gradient(i, pass);
        });
  }
}

DistributedDataParallel::~DistributedDataParallel() = default;

std::vector<Variable> DistributedDataParallel::forward(const Batch& batch, Graph& graph) {
  if (graph.grad_enabled()) {
    reducer_->prepare_for_forward();
    reducer_->rebuild_buckets();
  }
  std::vector<Variable> outputs = model_->forward(batch, graph);
  if (!graph.grad_enabled()) return outputs;

  reducer_->prepare_for_backward(graph, outputs);
  if (reducer_->needs_delayed_reduction()) {
    for (Variable& output : outputs) {
      if (!output.node) continue;
      auto node = std::make_shared<BackwardBegins>(output.node, reducer_);
      output = graph.record(std::move(output.data), std::move(node));
    }
  }
  return outputs;
}

std::vector<BucketInfo> DistributedDataParallel::buckets() const {
  std::vector<BucketInfo> result;
  for (const Bucket& bucket : reducer_->buckets()) {
    BucketInfo info;
    info.index = static_cast<std::int64_t>(result.size());
    info.bytes = bucket.gradients.nbytes();
    info.elements = bucket.gradients.numel();
    info.dtype = bucket.gradients.dtype();
    for (const BucketSlot& slot : bucket.slots) {
      info.parameter_indices.push_back(static_cast<std::int64_t>(slot.parameter));
    }
    info.parameters = *bucket.names;
    result.push_back(std::move(info));
  }
  return result;
}

bool DistributedDataParallel::has_rebuilt_buckets() const noexcept {
  return reducer_->has_rebuilt_buckets();
}

const IterationTimes& DistributedDataParallel::last_iteration() const noexcept {
  return reducer_->times();
}

}  // namespace gradsync
