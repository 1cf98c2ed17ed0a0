#include "gradsync/ddp/reducer.hpp"

namespace gradsync {

/// Runs when backward has ended on this rank and all buckets are launched. Waits for the buckets in
/// order and copies the means into the gradients.
void Reducer::finalise() {
  expects_hooks_ = false;
  needs_finalise_ = false;
  for (std::size_t b = 0; b < buckets_.size(); ++b) take_result(buckets_[b], b);
  group_->clock().stamp(times_.backward_comm_end);
  if (tracks_use()) {
    used_->finish();
    // With static_graph, the marks of the first iteration are kept.
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
  const bool in_place = result.aliases(bucket.gradients);
  std::vector<Tensor> parts;  // parts of a result that is not the bucket itself
  parts.reserve(bucket.slots.size());
  copies_.clear();
  for (const BucketSlot& slot : bucket.slots) {
    Parameter& parameter = *parameters_[slot.parameter];
    // Unused on all ranks: keep the gradient, which is from an earlier iteration if it is defined.
    if (tracks_use() && !used_->is_used_anywhere(slot.parameter)) continue;

    if (options_.gradient_as_bucket_view) {
      if (parameter.grad.defined() && !parameter.grad.aliases(slot.view)) {
        refuse(not_a_bucket_view(place(), parameter.name()));
      }
      parameter.grad = slot.view;
      continue;
    }
    if (!parameter.grad.defined()) parameter.grad = parameter.data.empty_like();
    if (!in_place) parts.push_back(result.slice(slot.offset, parameter.data.shape()));
    copies_.push_back({&parameter.grad, in_place ? &slot.view : &parts.back()});
  }
  if (!copies_.empty()) bucket.gradients.device().copy_many(copies_);
}

}  // namespace gradsync
