#include <algorithm>
#include <array>
#include <limits>

#include "gradsync/ddp/bucket_plan.hpp"
#include "gradsync/ddp/control_tensor.hpp"
#include "gradsync/ddp/reducer.hpp"

namespace gradsync {
namespace {

using Assignment = std::vector<std::vector<std::size_t>>;

BucketTensor describe(const Parameter& parameter) {
  return {.numel = parameter.data.numel(),
          .dtype = parameter.data.dtype(),
          .device = static_cast<int>(parameter.data.device().type())};
}

}  // namespace

bool Reducer::should_rebuild() const noexcept {
  return (options_.static_graph || !options_.find_unused_parameters) && !rebuilt_;
}

/// The layout before the ready order is known. With find_unused_parameters, buckets have the usual
/// limits; otherwise there is one bucket per dtype, so that none is launched before the end of the
/// first backward. Buckets are in reverse registration order, the expected ready order.
Assignment Reducer::initial_assignment() const {
  std::vector<BucketTensor> tensors;
  for (const ParameterPtr& parameter : parameters_) tensors.push_back(describe(*parameter));
  std::vector<Bytes> limits{std::numeric_limits<Bytes>::max()};
  if (options_.find_unused_parameters && !options_.static_graph) {
    const BucketCaps caps = bucket_caps(options_);
    limits = {caps.first, caps.others};
  }
  Assignment buckets = compute_bucket_assignment_by_size(tensors, limits).buckets;
  std::ranges::reverse(buckets);
  return buckets;
}

Assignment Reducer::arrival_assignment() const {
  std::vector<BucketTensor> tensors;
  std::vector<std::int64_t> indices;
  for (const std::size_t index : arrival_) {
    tensors.push_back(describe(*parameters_[index]));
    indices.push_back(static_cast<std::int64_t>(index));
  }
  const BucketCaps caps = bucket_caps(options_);
  return compute_bucket_assignment_by_size(tensors, std::array{caps.first, caps.others}, {},
                                           indices)
      .buckets;
}

/// Gradients may become ready in a different order here than on rank 0; all ranks use rank 0's
/// layout. Two broadcasts, as in PyTorch: all indices followed by the number of buckets, then the
/// bucket sizes.
Assignment Reducer::assignment_of_rank0(const Assignment& mine) {
  Device& device = control_device(parameters_.front()->data);
  const auto broadcast = [&](const std::vector<std::int32_t>& values, const char* what) {
    const Tensor tensor = control_tensor(values, DType::kInt32, device);
    group_->broadcast(tensor, 0, position_->options(Phase::kForward, what))->wait();
    return control_values<std::int32_t>(tensor);
  };

  std::vector<std::int32_t> indices;
  std::vector<std::int32_t> sizes;
  for (const auto& bucket : mine) {
    for (const std::size_t index : bucket) indices.push_back(static_cast<std::int32_t>(index));
    sizes.push_back(static_cast<std::int32_t>(bucket.size()));
  }
  indices.push_back(static_cast<std::int32_t>(mine.size()));
  indices = broadcast(indices, "rebuilt bucket indices");
  sizes.resize(static_cast<std::size_t>(indices.back()), 0);
  sizes = broadcast(sizes, "rebuilt bucket sizes");

  Assignment result;
  auto next = indices.begin();
  for (const std::int32_t size : sizes) {
    auto& bucket = result.emplace_back();
    for (std::int32_t i = 0; i < size; ++i) bucket.push_back(static_cast<std::size_t>(*next++));
  }
  return result;
}

bool Reducer::rebuild_buckets() {
  if (needs_finalise_) refuse(unfinished_reduction(place(), options_, missing_gradients()));
  if (!should_rebuild() || arrival_.empty()) return false;
  if (arrival_.size() != parameters_.size()) {
    throw Error(ErrorCode::kInternal, "DDP rebuilds its buckets from an incomplete order");
  }
  set_layout(assignment_of_rank0(arrival_assignment()));
  arrival_ = {};
  rebuilt_ = true;
  return true;
}

void Reducer::set_layout(const Assignment& assignment) {
  buckets_.clear();  // free first: two layouts at once would double the memory
  buckets_ = make_buckets(parameters_, assignment);
  locations_ = locate_parameters(buckets_, parameters_.size());
  if (!options_.gradient_as_bucket_view) return;
  // Move existing gradients into their new buckets.
  for (Bucket& bucket : buckets_) {
    for (BucketSlot& slot : bucket.slots) {
      Tensor& grad = parameters_[slot.parameter]->grad;
      if (!grad.defined()) continue;
      grad.device().copy(slot.view, grad);
      grad = slot.view;
    }
  }
}

}  // namespace gradsync
