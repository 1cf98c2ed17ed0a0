#include "engine/ddp/reducer.hpp"

namespace gradsync {

/// Backward has ended on this rank and all buckets are launched. Waits for them in order and puts
/// the means into the gradients.
void Reducer::finalise() {
  expects_hooks_ = false;
  needs_finalise_ = false;
  for (std::size_t b = 0; b < buckets_.size(); ++b) take_result(buckets_[b], b);
  times_.backward_comm_end = group_->clock().now();
  if (tracks_use()) {
    used_->finish();
    // With static_graph the marks of the first iteration stay.
    if (dynamic_find_unused()) used_->clear();
  }
}

void Reducer::take_result(Bucket& bucket, std::size_t index) {
  const Tensor result = bucket.future();  // waits
  bucket.future = nullptr;
  if (!result.defined() || result.numel() != bucket.gradients.numel() ||
      result.dtype() != bucket.gradients.dtype()) {
    refuse(wrong_hook_result(place(), index, bucket.gradients, result));
  }
  if (options_.gradient_as_bucket_view && !result.aliases(bucket.gradients)) {
    bucket.gradients.device().copy(bucket.gradients, result);
  }
  for (const BucketSlot& slot : bucket.slots) take_result(bucket, slot, result);
}

void Reducer::take_result(const Bucket& bucket, const BucketSlot& slot, const Tensor& result) {
  Parameter& parameter = *parameters_[slot.parameter];
  // Nobody used it: its gradient, if it has one, is that of an earlier iteration and stays.
  if (tracks_use() && !used_->is_used_anywhere(slot.parameter)) return;

  if (options_.gradient_as_bucket_view) {
    if (parameter.grad.defined() && !parameter.grad.aliases(slot.view)) {
      refuse(not_a_bucket_view(place(), parameter.name()));
    }
    parameter.grad = slot.view;
    return;
  }
  if (!parameter.grad.defined()) parameter.grad = parameter.data.empty_like();
  const bool in_place = result.aliases(bucket.gradients);
  parameter.grad.device().copy(
      parameter.grad, in_place ? slot.view : result.slice(slot.offset, parameter.data.shape()));
}

}  // namespace gradsync
