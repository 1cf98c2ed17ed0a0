#include "gradsync/ddp/reducer.hpp"

#include <algorithm>
#include <unordered_set>

#include "gradsync/ddp/control_tensor.hpp"
#include "gradsync/tensor/rounding.hpp"

namespace gradsync {
namespace {

constexpr const char* kNothingUnused =
    "find_unused_parameters is set, but an iteration had none: the walk through the graph and the "
    "buckets that are never rebuilt cost time. Leave it out if this is always so.";

constexpr const char* kLocalGradients =
    "a backward pass whose gradients stay local: it follows no forward of its own through DDP (a "
    "second backward of one forward, two forwards before two backwards, or a forward that bypassed "
    "DDP). Ranks will differ.";

}  // namespace

Reducer::Reducer(std::vector<ParameterPtr> parameters, ProcessGroup& group,
                 const LoopPosition& position, Warnings& warnings, const DdpOptions& options)
    : parameters_(std::move(parameters)),
      group_(&group),
      position_(&position),
      warnings_(&warnings),
      options_(options),
      fills_at_launch_(parameters_.front()->data.device().prefers_batches()),
      ready_(parameters_.size(), 0) {
  set_layout(initial_assignment());
  if (options_.find_unused_parameters || options_.static_graph) {
    used_.emplace(parameters_.size(), control_device(parameters_.front()->data));
  }
  if (options_.static_graph) hooks_expected_.assign(parameters_.size(), 0);
}

bool Reducer::dynamic_find_unused() const noexcept {
  return options_.find_unused_parameters && !options_.static_graph;
}

void Reducer::refuse(const Error& misuse) const {
  if (error_observer_) error_observer_(misuse.what());
  throw misuse;
}

void Reducer::prepare_for_forward() {
  times_ = {};
  group_->clock().stamp(times_.forward_start);
}

void Reducer::expect_backward() {
  group_->clock().stamp(times_.backward_compute_start);
  has_prepared_backward_ = true;
  expects_hooks_ = true;
  local_is_intended_ = false;
  unused_marked_ = false;
  next_bucket_ = 0;
  divisor_ = 0;
  ready_order_.clear();
  for (Bucket& bucket : buckets_) bucket.pending = bucket.slots.size();
  std::ranges::fill(ready_, std::uint8_t{0});
  if (graph_recorded_) hooks_left_ = hooks_expected_;
}

void Reducer::set_unused(std::vector<std::size_t> unused) {
  unused_ = std::move(unused);
  if (unused_.empty()) warnings_->once(kNothingUnused);
}

void Reducer::prepare_for_backward(const Graph& graph, const std::vector<Variable>& outputs) {
  expect_backward();
  if (!dynamic_find_unused()) return;
  const auto reachable = graph.reachable_parameters(outputs);
  const std::unordered_set<const Parameter*> reached(reachable.begin(), reachable.end());
  std::vector<std::size_t> unused;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!reached.contains(parameters_[i].get())) unused.push_back(i);
  }
  set_unused(std::move(unused));
}

void Reducer::prepare_for_backward(std::vector<std::size_t> unused) {
  expect_backward();
  if (dynamic_find_unused()) set_unused(std::move(unused));
}

void Reducer::on_gradient(std::size_t index, BackwardPass& pass) {
  // Since 2.4 (pytorch/pytorch#124193), uses in unsynchronized iterations count too: the next
  // synchronized iteration reduces the gradients they accumulated.
  if (dynamic_find_unused() && parameters_[index]->grad.defined() &&
      (expects_hooks_ || options_.pytorch_version >= PytorchVersion{2, 4})) {
    used_->mark(index);
  }
  if (!expects_hooks_) {
    if (!local_is_intended_) warnings_->once(kLocalGradients);
    return;
  }
  ready_order_.push_back(index);
  backward_site_ = pass.site();

  if (options_.static_graph && !graph_recorded_) {
    if (parameters_[index]->grad.defined()) used_->mark(index);
    ++hooks_expected_[index];
    return;
  }

  mark_unused_ready(pass);
  if (options_.static_graph) {
    if (hooks_left_[index] == 0) refuse(graph_changed(place(), name(index)));
    if (--hooks_left_[index] > 0) return;
  }
  if (should_rebuild()) arrival_.push_back(index);
  mark_ready(index, pass);
}

/// Runs before the first gradient of a backward, as in PyTorch.
void Reducer::mark_unused_ready(BackwardPass& pass) {
  if (unused_marked_) return;
  unused_marked_ = true;
  for (const std::size_t unused : unused_) mark_ready(unused, pass);
}

void Reducer::on_last_gradient(BackwardPass& pass) {
  if (needs_delayed_reduction()) return reduce_after_backward(pass);
  if (expects_hooks_) mark_unused_ready(pass);
}

std::vector<std::string> Reducer::missing_gradients() const {
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (ready_[i] == 0) missing.push_back(name(i));
  }
  return missing;
}

void Reducer::check_finished() const {
  if (expects_hooks_) refuse(gradients_not_marked(place(), missing_gradients()));
}

void Reducer::mark_ready(std::size_t index, BackwardPass& pass) {
  if (ready_[index] != 0) refuse(marked_ready_twice(place(), options_, name(index)));
  ready_[index] = 1;
  needs_finalise_ = true;
  if (!fills_at_launch_) fill_slot(*parameters_[index], index);

  const std::size_t bucket = locations_[index].bucket;
  if (--buckets_[bucket].pending > 0 || bucket != next_bucket_) return;
  launch_ready_buckets();
  if (next_bucket_ == buckets_.size()) queue_finalisation(pass);
}

/// Copies the gradient into its bucket: unscaled for a communication hook, otherwise scaled.
/// Multiplication and division differ in the last bit if the divisor is not a power of two; each
/// follows PyTorch.
void Reducer::fill_slot(Parameter& parameter, std::size_t index) {
  if (divisor_ == 0) divisor_ = divisor_source_ ? divisor_source_() : group_->size();
  const BucketLocation location = locations_[index];
  Tensor& view = buckets_[location.bucket].slots[location.slot].view;
  Device& device = view.device();
  if (!parameter.grad.defined()) {
    if (tracks_use() && !graph_recorded_ && used_->is_marked(index)) {
      refuse(used_without_gradient(place(), parameter.name()));
    }
    device.fill(view, 0);
    return;
  }
  if (parameter.grad.dtype() != view.dtype()) {
    refuse(dtype_changed(place(), parameter.name(), parameter.grad.dtype(), view.dtype()));
  }
  if (parameter.grad.aliases(view)) {
    if (predivides()) device.divide(view, divisor_);
    return;
  }
  if (fills_at_launch_) {
    copies_.push_back({&view, &parameter.grad});
    return;
  }
  if (predivides()) {
    device.scale(view, parameter.grad, scale_factor(view.dtype()));
  } else {
    device.copy(view, parameter.grad);
  }
  if (options_.gradient_as_bucket_view) parameter.grad = view;
}

/// Copies all gradients of a bucket at once, for devices where each copy costs a launch. The
/// gradients have not changed since their hooks ran: the reducer owns them until the end of
/// backward.
void Reducer::fill_bucket(Bucket& bucket) {
  copies_.clear();
  for (const BucketSlot& slot : bucket.slots) {
    fill_slot(*parameters_[slot.parameter], slot.parameter);
  }
  if (copies_.empty()) return;
  Device& device = bucket.gradients.device();
  if (predivides()) {
    device.scale_many(copies_, scale_factor(bucket.gradients.dtype()));
  } else {
    device.copy_many(copies_);
  }
  if (!options_.gradient_as_bucket_view) return;
  for (const BucketSlot& slot : bucket.slots) {
    Tensor& grad = parameters_[slot.parameter]->grad;
    if (grad.defined()) grad = slot.view;
  }
}

bool Reducer::predivides() const noexcept {
  return !comm_hook_ && options_.gradient_mean == GradientMean::kPredivide;
}

/// The factor 1/divisor as PyTorch applies it. Before 2.0 it was rounded to the gradient's own
/// type; since then, to float32 for the 16-bit types.
double Reducer::scale_factor(DType dtype) const {
  const double factor = 1.0 / divisor_;
  if (options_.pytorch_version < PytorchVersion{2, 0}) {
    if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) return round_to(dtype, factor);
  }
  return factor;
}

void Reducer::launch_ready_buckets() {
  while (next_bucket_ < buckets_.size() && buckets_[next_bucket_].pending == 0) {
    launch(next_bucket_);
    ++next_bucket_;
  }
}

void Reducer::launch(std::size_t index) {
  Bucket& bucket = buckets_[index];
  if (fills_at_launch_) fill_bucket(bucket);
  if (index == 0) group_->clock().stamp(times_.backward_comm_start);
  bucket.future = start_reduction(bucket, index, bucket.gradients, Phase::kBackward);
}

BucketFuture Reducer::start_reduction(const Bucket& bucket, std::size_t index,
                                      const Tensor& gradients, Phase phase) {
  CollectiveOptions options =
      position_->options(phase, "gradients", static_cast<std::int32_t>(index), bucket.names);
  if (phase == Phase::kBackward) options.label.site = backward_site_.text();
  if (!comm_hook_) {
    const ReduceOp op =
        options_.gradient_mean == GradientMean::kAverage ? ReduceOp::kAverage : ReduceOp::kSum;
    WorkPtr work = group_->allreduce(gradients, op, options);
    return [work = std::move(work), gradients] {
      work->wait();
      return gradients;
    };
  }
  std::vector<Tensor> views;
  std::vector<ParameterPtr> parameters;
  for (const BucketSlot& slot : bucket.slots) {
    views.push_back(gradients.slice(slot.offset, slot.view.shape()));
    parameters.push_back(parameters_[slot.parameter]);
  }
  GradBucket grad_bucket(static_cast<std::int64_t>(index), index + 1 == buckets_.size(), gradients,
                         std::move(views), std::move(parameters));
  return comm_hook_(grad_bucket, CommHookContext(*group_, options));
}

CollectiveOptions Reducer::backward_options(std::string what) const {
  CollectiveOptions options = position_->options(Phase::kBackward, std::move(what));
  options.label.site = backward_site_.text();
  return options;
}

void Reducer::queue_finalisation(BackwardPass& pass) {
  // Reduce the map after the last bucket, while backward still computes gradients that are not
  // reduced.
  if (dynamic_find_unused()) {
    used_->launch(*group_, backward_options("used parameters"));
  }
  pass.queue_callback([this] {
    group_->clock().stamp(times_.backward_compute_end);
    if (options_.static_graph && should_rebuild()) {
      arrival_.insert(arrival_.end(), unused_.begin(), unused_.end());
    }
    finalise();
  });
}

bool Reducer::needs_delayed_reduction() const noexcept {
  return options_.static_graph && !delay_queued_;
}

void Reducer::reduce_after_backward(BackwardPass& pass) {
  if (!needs_delayed_reduction()) return;
  delay_queued_ = true;
  backward_site_ = pass.site();
  pass.queue_callback([this] { reduce_recorded_graph(); });
}

/// static_graph: the first backward only counted hooks. Parameters it did not reach stay unused for
/// good.
void Reducer::reduce_recorded_graph() {
  group_->clock().stamp(times_.backward_compute_end);
  used_->launch(*group_, backward_options("used parameters"));
  needs_finalise_ = true;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (hooks_expected_[i] == 0) unused_.push_back(i);
    ready_[i] = 1;
    if (!fills_at_launch_) fill_slot(*parameters_[i], i);
  }
  for (Bucket& bucket : buckets_) bucket.pending = 0;
  launch_ready_buckets();
  finalise();
  graph_recorded_ = true;
}

void Reducer::set_comm_hook(CommHook hook) {
  if (comm_hook_) throw hook_registered_twice(place());
  if (has_prepared_backward_) throw hook_registered_late(place());
  comm_hook_ = std::move(hook);
}

void Reducer::shadow_backward() {
  std::vector<BucketFuture> futures;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    futures.push_back(
        start_reduction(buckets_[b], b, buckets_[b].gradients.zeros_like(), Phase::kJoin));
  }
  for (const BucketFuture& wait : futures) wait();
  if (dynamic_find_unused()) {
    used_->shadow(*group_, position_->options(Phase::kJoin, "used parameters"));
  }
  // If this rank is rank 0, its ready order determines everybody's buckets; use registration order.
  if (should_rebuild() && arrival_.empty()) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) arrival_.push_back(i);
  }
}

}  // namespace gradsync
