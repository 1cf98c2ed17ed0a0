#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gradsync/autograd/parameter.hpp"
#include "gradsync/comm/process_group.hpp"
#include "gradsync/ddp/loop_position.hpp"

namespace gradsync {

/// A full bucket, as seen by a communication hook (torch.distributed.GradBucket).
class GradBucket {
 public:
  GradBucket(std::int64_t index, bool is_last, Tensor buffer, std::vector<Tensor> gradients,
             std::vector<ParameterPtr> parameters)
      : index_(index),
        is_last_(is_last),
        buffer_(std::move(buffer)),
        gradients_(std::move(gradients)),
        parameters_(std::move(parameters)) {}

  /// Index in launch order.
  std::int64_t index() const noexcept { return index_; }
  /// True for the last bucket of the iteration.
  bool is_last() const noexcept { return is_last_; }
  /// All gradients of the bucket, concatenated and flat. Local values, not yet divided.
  const Tensor& buffer() const noexcept { return buffer_; }
  /// Views into the buffer, each in the shape of its parameter.
  const std::vector<Tensor>& gradients() const noexcept { return gradients_; }
  const std::vector<ParameterPtr>& parameters() const noexcept { return parameters_; }

 private:
  std::int64_t index_;
  bool is_last_;
  Tensor buffer_;
  std::vector<Tensor> gradients_;
  std::vector<ParameterPtr> parameters_;
};

/// What a hook needs to communicate.
class CommHookContext {
 public:
  CommHookContext(ProcessGroup& group, CollectiveOptions options)
      : group_(&group), options_(std::move(options)) {}

  ProcessGroup& group() const noexcept { return *group_; }
  /// Labels a collective of this bucket with its content, e.g. "gradients as float16".
  CollectiveOptions options(std::string what) const {
    CollectiveOptions result = options_;
    result.label.what = std::move(what);
    return result;
  }

 private:
  ProcessGroup* group_;
  CollectiveOptions options_;
};

/// The future result of a hook. Called once, at the end of backward: waits and returns the reduced
/// bucket, flat, with the buffer's numel and dtype (the buffer itself or another tensor).
using BucketFuture = std::function<Tensor()>;

/// Replaces the all-reduce of a bucket. Called once per bucket and iteration when the bucket is
/// launched, in the same order on every rank; issues its collectives without waiting and returns.
/// DDP does not divide when a hook is registered: a hook that wants the mean must divide.
///
/// A hook belongs to one rank and must issue the same collectives on all ranks.
using CommHook = std::function<BucketFuture(GradBucket& bucket, const CommHookContext& context)>;

}  // namespace gradsync
