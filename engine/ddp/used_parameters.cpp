#include "gradsync/ddp/used_parameters.hpp"

#include <algorithm>
#include <utility>

#include "gradsync/ddp/control_tensor.hpp"

namespace gradsync {

UsedParameters::UsedParameters(std::size_t count, Device& device)
    : used_(count, 0),
      reduced_(Tensor::zeros({static_cast<std::int64_t>(count)}, DType::kInt32, device)) {}

void UsedParameters::launch(ProcessGroup& group, const CollectiveOptions& options) {
  reduced_.device().copy_from_host(reduced_, std::as_bytes(std::span(used_)));
  work_ = group.allreduce(reduced_, ReduceOp::kSum, options);
}

void UsedParameters::shadow(ProcessGroup& group, const CollectiveOptions& options) {
  group.allreduce(reduced_, ReduceOp::kSum, options)->wait();
}

bool UsedParameters::is_used_anywhere(std::size_t parameter) {
  if (used_[parameter] == 0) finish();
  return used_[parameter] != 0;
}

void UsedParameters::finish() {
  if (!work_) return;
  std::exchange(work_, nullptr)->wait();
  used_ = control_values<std::int32_t>(reduced_);
}

void UsedParameters::clear() {
  std::ranges::fill(used_, 0);
}

}  // namespace gradsync
