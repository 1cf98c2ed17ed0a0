#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "gradsync/autograd/graph.hpp"
#include "gradsync/ddp/bucket.hpp"
#include "gradsync/ddp/comm_hook.hpp"
#include "gradsync/ddp/ddp_options.hpp"
#include "gradsync/ddp/iteration_times.hpp"
#include "gradsync/ddp/loop_position.hpp"
#include "gradsync/ddp/reducer_errors.hpp"
#include "gradsync/ddp/used_parameters.hpp"
#include "gradsync/ddp/warnings.hpp"

namespace gradsync {

/// Averages gradients over all ranks while backward is still running.
///
/// Every parameter belongs to a bucket. When a gradient has been accumulated, its hook calls
/// `on_gradient`, which copies it into its bucket, scaled by 1/world (see GradientMean). A bucket
/// is launched (one asynchronous all-reduce) once all its gradients are ready and every earlier
/// bucket has been launched; this keeps the order of collectives equal on all ranks, whatever the
/// order of the gradients. At the end of backward the reducer waits for all buckets and copies the
/// means back.
///
/// An iteration calls, in this order: prepare_for_forward, rebuild_buckets, (the model's forward),
/// prepare_for_backward, and from backward on_gradient for each parameter. The rules, including the
/// number and order of collectives, are those of PyTorch's reducer.
///
/// Belongs to one rank; not thread-safe.
class Reducer {
 public:
  /// `position` labels the collectives; `position`, `group` and `warnings` must outlive the
  /// reducer.
  Reducer(std::vector<ParameterPtr> parameters, ProcessGroup& group, const LoopPosition& position,
          Warnings& warnings, const DdpOptions& options);

  const std::vector<ParameterPtr>& parameters() const noexcept { return parameters_; }

  /// Starts a forward whose backward will be synchronized.
  void prepare_for_forward();
  /// Call in every forward with gradients enabled. Rebuilds the buckets once, in the order in which
  /// gradients became ready on rank 0; returns true when it did. Throws Error(kMisuse) if the
  /// reduction of the last backward is unfinished.
  bool rebuild_buckets();
  /// Ends a forward whose backward will be synchronized. The unused parameters are searched on the
  /// graph, or passed by callers without a graph; only find_unused_parameters uses them.
  void prepare_for_backward(const Graph& graph, const std::vector<Variable>& outputs);
  void prepare_for_backward(std::vector<std::size_t> unused);
  /// Ends a forward whose backward intentionally leaves gradients local (no_sync).
  void prepare_for_local_backward() noexcept { local_is_intended_ = true; }

  /// Gradient hook of parameter `index`: its gradient has been accumulated.
  void on_gradient(std::size_t index, BackwardPass& pass);
  /// Ends a backward that was prepared, for callers that call `on_gradient` without a graph. Queues
  /// the callbacks that reduce the rest: everything, if backward reached no parameter but there are
  /// unused ones, and the recorded graph of static_graph's first iteration.
  void on_last_gradient(BackwardPass& pass);
  /// Call after the callbacks: throws Error(kMisuse) if gradients are missing.
  void check_finished() const;

  /// static_graph, first iteration: gradients are reduced together at the end of backward. Returns
  /// true until that is arranged; the outputs of forward must then lead to `reduce_after_backward`.
  bool needs_delayed_reduction() const noexcept;
  void reduce_after_backward(BackwardPass& pass);

  /// Replaces the all-reduce of the buckets; DDP no longer divides. Throws Error(kMisuse) if a hook
  /// is already registered or a backward has been prepared.
  void set_comm_hook(CommHook hook);
  /// Sets the source of the gradient divisor, called once per iteration at its first gradient. With
  /// an empty function the divisor is the number of ranks.
  void set_divisor(std::function<double()> divisor) { divisor_source_ = std::move(divisor); }

  /// Passes the text of every misuse to `observer` before it is thrown.
  void set_error_observer(std::function<void(const std::string&)> observer) {
    error_observer_ = std::move(observer);
  }

  /// Shadows the backward of the other ranks on a rank without inputs: takes part in their
  /// collectives with zeros, and completes its own ready order. Returns when they are done.
  void shadow_backward();

  /// True between the end of a forward whose backward will be reduced and the end of that backward.
  bool awaits_backward() const noexcept { return expects_hooks_; }
  const std::vector<Bucket>& buckets() const noexcept { return buckets_; }
  bool has_rebuilt_buckets() const noexcept { return rebuilt_; }
  const IterationTimes& times() const noexcept { return times_; }
  /// Parameters in the order in which their gradients became ready in the last synchronized
  /// backward.
  const std::vector<std::size_t>& ready_order() const noexcept { return ready_order_; }
  /// Parameters that the last synchronized backward did not reach, if they are tracked.
  const std::vector<std::size_t>& unused_parameters() const noexcept { return unused_; }

 private:
  bool dynamic_find_unused() const noexcept;
  bool should_rebuild() const noexcept;
  bool tracks_use() const noexcept { return used_.has_value(); }
  [[noreturn]] void refuse(const Error& misuse) const;
  ErrorPlace place() const noexcept { return {group_->rank(), *position_}; }
  const std::string& name(std::size_t index) const { return parameters_[index]->name(); }

  // Layout (reducer_layout.cpp)
  void set_layout(const std::vector<std::vector<std::size_t>>& assignment);
  std::vector<std::vector<std::size_t>> initial_assignment() const;
  std::vector<std::vector<std::size_t>> arrival_assignment() const;
  std::vector<std::vector<std::size_t>> assignment_of_rank0(
      const std::vector<std::vector<std::size_t>>& mine);

  // Backward
  void expect_backward();
  void set_unused(std::vector<std::size_t> unused);
  void mark_unused_ready(BackwardPass& pass);
  std::vector<std::string> missing_gradients() const;
  void mark_ready(std::size_t index, BackwardPass& pass);
  void fill_slot(Parameter& parameter, std::size_t index);
  void fill_bucket(Bucket& bucket);
  /// Whether gradients are divided when they are copied into the bucket.
  bool predivides() const noexcept;
  double scale_factor(DType dtype) const;
  void launch_ready_buckets();
  void launch(std::size_t bucket);
  BucketFuture start_reduction(const Bucket& bucket, std::size_t index, const Tensor& gradients,
                               Phase phase);
  void queue_finalisation(BackwardPass& pass);
  /// Options of a collective caused by the call at `backward_site_`.
  CollectiveOptions backward_options(std::string what) const;
  void reduce_recorded_graph();

  // End of backward (reducer_finalise.cpp)
  void finalise();
  void take_result(Bucket& bucket, std::size_t index);

  std::vector<ParameterPtr> parameters_;
  ProcessGroup* group_;
  const LoopPosition* position_;
  Warnings* warnings_;
  DdpOptions options_;

  std::vector<Bucket> buckets_;
  std::vector<BucketLocation> locations_;  // by parameter
  bool fills_at_launch_;                   // copy all gradients of a bucket together at launch
  std::vector<TensorPair> copies_;         // pending copies of the current bucket
  bool rebuilt_ = false;
  std::vector<std::size_t> arrival_;  // ready order of the parameters, for the rebuild

  CallSite backward_site_ = CallSite::none();  // call site of the backward pass to be reduced
  bool local_is_intended_ = false;             // unexpected gradients are intended (no_sync)
  bool expects_hooks_ = false;       // between prepare_for_backward and the end of its backward
  bool needs_finalise_ = false;      // a bucket holds gradients that are not finalized yet
  bool unused_marked_ = false;       // the unused parameters of this backward are marked ready
  std::size_t next_bucket_ = 0;      // next bucket to launch
  std::vector<std::uint8_t> ready_;  // by parameter, in this iteration
  std::vector<std::size_t> ready_order_;
  std::function<double()> divisor_source_;
  double divisor_ = 0;  // of this iteration; 0 until known
  std::function<void(const std::string&)> error_observer_;

  CommHook comm_hook_;
  bool has_prepared_backward_ = false;

  std::vector<std::size_t> unused_;  // parameters that this backward will not reach
  std::optional<UsedParameters> used_;

  bool graph_recorded_ = false;      // static_graph: the first iteration is over
  bool delay_queued_ = false;        // static_graph: the reduction of the first iteration is queued
  std::vector<int> hooks_expected_;  // static_graph: calls in the first iteration
  std::vector<int> hooks_left_;      // static_graph: hook calls left in this iteration

  IterationTimes times_;
};

}  // namespace gradsync
