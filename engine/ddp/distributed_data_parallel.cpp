#include "gradsync/ddp/distributed_data_parallel.hpp"

#include "gradsync/ddp/control_tensor.hpp"
#include "gradsync/ddp/ddp_logging.hpp"
#include "gradsync/ddp/join_protocol.hpp"
#include "gradsync/ddp/reducer.hpp"
#include "gradsync/ddp/replica.hpp"
#include "gradsync/ddp/replica_check.hpp"
#include "gradsync/ddp/state_broadcast.hpp"

namespace gradsync {
namespace {

/// An identity node through which the gradient of every output enters the model. It tells the
/// reducer that backward has started.
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

}  // namespace

DistributedDataParallel::DistributedDataParallel(std::vector<ParameterPtr> parameters,
                                                 std::vector<BufferPtr> buffers,
                                                 ProcessGroup& group, const DdpOptions& options,
                                                 const CallSite& site)
    : replica_(std::make_unique<Replica>(parameters, buffers, options, group.rank())),
      group_(&group),
      options_(options) {
  position_.site = site;
  check_replicas(group, replica_->trainable, describe_replica(*replica_, options), position_);
  broadcast_state(0, position_.options(Phase::kInit, "parameters"));

  reducer_ = std::make_shared<Reducer>(replica_->trainable, group, position_, warnings_, options);
  logger_ = std::make_shared<DdpLogger>(*reducer_, group, options);
  // A running hook may keep the reducer alive longer than DDP, but not the logger.
  reducer_->set_error_observer([logger = std::weak_ptr(logger_)](const std::string& text) {
    if (const auto alive = logger.lock()) alive->set_error(text);
  });
  const auto& reduced = reducer_->parameters();
  for (std::size_t i = 0; i < reduced.size(); ++i) {
    // Weak: parameters, and their hooks, may outlive DDP.
    reduced[i]->add_gradient_hook(
        [reducer = std::weak_ptr(reducer_), i](Parameter&, BackwardPass& pass) {
          if (const auto alive = reducer.lock()) alive->on_gradient(i, pass);
        });
  }
}

DistributedDataParallel::~DistributedDataParallel() = default;

void DistributedDataParallel::begin_forward(bool trains, const CallSite& site) {
  const bool reduces = trains && require_backward_grad_sync_;
  position_.site = site;
  if (reduces) {
    logger_->update(*reducer_);
    reducer_->prepare_for_forward();
  }
  if (join_) {
    next_joined_iteration();
    join_->announce_forward();
  }
  if (trains) reducer_->rebuild_buckets();
  if (buffers_are_due()) {
    sync_buffers(join_ ? join_->highest_rank(true) : 0,
                 trains ? Phase::kForward : Phase::kEvaluation);
  }
  if (join_) join_->announce_backward(reduces);
}

bool DistributedDataParallel::end_forward(bool trains) {
  const bool reduces = trains && require_backward_grad_sync_;
  require_forward_param_sync_ = reduces;
  if (trains && !reduces) reducer_->prepare_for_local_backward();
  return reduces;
}

std::vector<Variable> DistributedDataParallel::forward(
    Graph& graph, const std::function<std::vector<Variable>()>& compute, const CallSite& site) {
  const bool trains = graph.grad_enabled();
  begin_forward(trains, site);
  std::vector<Variable> outputs = compute();
  if (!end_forward(trains)) return outputs;
  reducer_->prepare_for_backward(graph, outputs);
  logger_->check_static(*reducer_);
  if (reducer_->needs_delayed_reduction()) {
    for (Variable& output : outputs) {
      if (!output.node) continue;
      auto node = std::make_shared<BackwardBegins>(output.node, reducer_);
      output = graph.record(std::move(output.data), std::move(node));
    }
  }
  return outputs;
}

void DistributedDataParallel::set_position(std::int64_t epoch, std::int64_t step,
                                           std::int64_t micro_step) {
  if (!join_) position_ = {epoch, step, micro_step, position_.site};
}

void DistributedDataParallel::register_comm_hook(CommHook hook, std::string name) {
  reducer_->set_comm_hook(std::move(hook));
  logger_->set_comm_hook(name);
  comm_hook_name_ = std::move(name);
}

std::vector<Tensor> DistributedDataParallel::buffers() const {
  std::vector<Tensor> tensors;
  for (const BufferPtr& buffer : replica_->buffers) tensors.push_back(buffer->data);
  return tensors;
}

void DistributedDataParallel::broadcast_state(int root, const CollectiveOptions& options) {
  std::vector<Tensor> state;
  for (const ParameterPtr& parameter : replica_->parameters) state.push_back(parameter->data);
  // Before 2.1 (pytorch/pytorch#100729) broadcast_buffers affected forwards only.
  if (options_.broadcast_buffers || options_.pytorch_version < PytorchVersion{2, 1}) {
    for (Tensor& buffer : buffers()) state.push_back(std::move(buffer));
  }
  broadcast_coalesced(*group_, state, root, options);
}

bool DistributedDataParallel::buffers_are_due() const {
  return require_forward_param_sync_ && options_.broadcast_buffers && !buffers().empty();
}

void DistributedDataParallel::sync_buffers(int root, Phase phase) {
  broadcast_coalesced(*group_, buffers(), root, position_.options(phase, "buffers"));
}

// Join
// -----------------------------------------------------------------------------------------------

void DistributedDataParallel::enter_join(const JoinOptions& options) {
  join_ = std::make_unique<JoinProtocol>(
      *group_, position_, control_device(reducer_->parameters().front()->data), options);
  position_before_join_ = position_;
  logger_->set_join_uneven_inputs();
  if (!options.divide_by_initial_world_size) {
    reducer_->set_divisor([this] { return join_->active_ranks(); });
  }
}

void DistributedDataParallel::leave_join() {
  if (!join_) return;
  join_.reset();
  reducer_->set_divisor({});
  position_ = position_before_join_;
}

void DistributedDataParallel::next_joined_iteration() {
  position_ = {position_before_join_.epoch, joined_iterations_++, 0, position_.site};
}

bool DistributedDataParallel::shadow_iteration() {
  next_joined_iteration();
  if (join_->count_active_ranks() == 0) return false;
  reducer_->rebuild_buckets();
  if (buffers_are_due()) sync_buffers(join_->highest_rank(false), Phase::kForward);
  const bool reduces = join_->others_reduce();
  require_forward_param_sync_ = reduces;
  if (reduces) reducer_->shadow_backward();
  return true;
}

void DistributedDataParallel::broadcast_final_state(bool trained_last) {
  const int root = join_->highest_rank(trained_last);
  broadcast_state(root, position_.options(Phase::kJoin, "parameters"));
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

const DdpLoggingData& DistributedDataParallel::logging_data() const noexcept {
  return logger_->data();
}

NoSyncGuard::NoSyncGuard(DistributedDataParallel& ddp)
    : ddp_(ddp),
      before_(ddp.require_backward_grad_sync_),
      awaits_backward_(ddp.reducer_->awaits_backward()) {
  ddp.require_backward_grad_sync_ = false;
}

NoSyncGuard::~NoSyncGuard() {
  ddp_.require_backward_grad_sync_ = before_;
  if (awaits_backward_ && !ddp_.reducer_->awaits_backward()) {
    ddp_.warn(
        "a backward inside no_sync was reduced, because its forward was outside: put forward and "
        "backward inside.");
  }
}

}  // namespace gradsync
