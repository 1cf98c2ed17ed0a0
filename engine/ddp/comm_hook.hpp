#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gradsync/autograd/parameter.hpp"
#include "gradsync/comm/process_group.hpp"
#include "gradsync/ddp/loop_position.hpp"

namespace gradsync {

/// A full bucket, as a communication hook sees it (torch.distributed.GradBucket).
class GradBucket {
 public:
  GradBucket(std::int64_t index, bool is_last, Tensor buffer, std::vector<Tensor> gradients,
             std::vector<ParameterPtr> parameters)
      : index_(index),
        is_last_(is_last),
        buffer_(std::move(buffer)),
        gradients_(std::move(gradients)),
        parameters_(std::move(parameters)) {}

  /// In launch order.
  std::int64_t index() const noexcept { return index_; }
  /// The last bucket of the iteration.
  bool is_last() const noexcept { return is_last_; }
  /// All gradients of the bucket, one after another, flat. Local and not divided by anything.
  const Tensor& buffer() const noexcept { return buffer_; }
  /// Views into the buffer, each in its parameter's shape.
  const std::vector<Tensor>& gradients() const noexcept { return gradients_; }
  const std::vector<ParameterPtr>& parameters() const noexcept { return parameters_; }

 private:
  std::int64_t index_;
  bool is_last_;
  Tensor buffer_;
  std::vector<Tensor> gradients_;
  std::vector<ParameterPtr> parameters_;
};

/// What a hook communicates with.
class CommHookContext {
 public:
  CommHookContext(ProcessGroup& group, CollectiveOptions options)
      : group_(&group), options_(std::move(options)) {}

  ProcessGroup& group() const noexcept { return *group_; }
  /// Labels a collective of this bucket with what it moves, e.g. "gradients as float16".
  CollectiveOptions options(std::string what) const {
    CollectiveOptions result = options_;
    result.label.what = std::move(what);
    return result;
  }

 private:
  ProcessGroup* group_;
  CollectiveOptions options_;
};

/// The result of a hook to come: called once, at the end of backward, it waits and returns the
/// reduced bucket, flat, with the buffer's numel and dtype (the buffer itself, or another tensor).
using BucketFuture = std::function<Tensor()>;

/// Decides what is sent for a bucket. Called once a bucket and iteration, when the bucket is
/// launched, in the same order on every rank; issues its collectives without waiting and returns.
/// DDP divides nothing where a hook is registered: a hook that wants means divides.
///
/// A hook belongs to one rank. It must issue the same collectives on all of them.
using CommHook = std::function<BucketFuture(GradBucket& bucket, const CommHookContext& context)>;

}  // namespace gradsync
