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
/// The parameters lie in buckets. When a gradient is accumulated its hook calls `on_gradient`,
/// which copies it, scaled by 1/world (see GradientMean), into its bucket. A bucket is launched
/// (one asynchronous all-reduce) once all its gradients are there and every bucket before it has
/// been launched: the order of the collectives is then the same on all ranks, whatever the order of
/// the gradients. At the end of backward the reducer waits for all buckets and copies the means
/// back.
///
/// An iteration calls, in this order: prepare_for_forward, rebuild_buckets, (the model's forward),
/// prepare_for_backward, and from backward on_gradient for each parameter. The rules, down to the
/// number and order of collectives, are those of PyTorch's reducer.
///
/// Belongs to one rank; not thread-safe.
class Reducer {
 public:
  /// `position` labels the collectives; it, `group` and `warnings` must outlive the reducer.
  Reducer(std::vector<ParameterPtr> parameters, ProcessGroup& group, const LoopPosition& position,
          Warnings& warnings, const DdpOptions& options);

  const std::vector<ParameterPtr>& parameters() const noexcept { return parameters_; }

  /// A forward starts whose backward will be synchronised.
  void prepare_for_forward();
  /// To be called in every forward with gradients on. Lays the buckets out anew in the order in
  /// which gradients arrived on rank 0, once, and then returns true. Throws Error(kMisuse) if the
  /// reduction of the last backward is unfinished.
  bool rebuild_buckets();
  /// A forward has ended whose backward will be synchronised. What that will not reach is found on
  /// the graph, or given by who has none; only find_unused_parameters takes notice of it.
  void prepare_for_backward(const Graph& graph, const std::vector<Variable>& outputs);
  void prepare_for_backward(std::vector<std::size_t> unused);
  /// A forward has ended whose backward leaves gradients local, as wanted (no_sync).
  void prepare_for_local_backward() noexcept { local_is_intended_ = true; }

  /// The hook of parameter `index`: its gradient has been accumulated.
  void on_gradient(std::size_t index, BackwardPass& pass);
  /// Backward ends. Its callbacks reduce what is left: all of a backward that reached nothing but
  /// has unused parameters, and the recorded graph of static_graph's first iteration. For who calls
  /// `on_gradient` without a graph; needs a prepared backward.
  void on_last_gradient(BackwardPass& pass);
  /// After the callbacks: throws Error(kMisuse) if gradients are missing.
  void check_finished() const;

  /// static_graph, first iteration: gradients are reduced together when backward ends. True until
  /// that is arranged for; the outputs of forward must then lead to `reduce_after_backward`.
  bool needs_delayed_reduction() const noexcept;
  void reduce_after_backward(BackwardPass& pass);

  /// Decides from now on what is sent for a bucket; DDP divides nothing then. Throws Error(kMisuse)
  /// if there is a hook already or a backward has been prepared.
  void set_comm_hook(CommHook hook);
  /// What gradients are divided by, asked once an iteration when its first gradient is there.
  /// Without one (an empty function) it is the number of ranks.
  void set_divisor(std::function<double()> divisor) { divisor_source_ = std::move(divisor); }

  /// Is told the text of every misuse before it is thrown.
  void set_error_observer(std::function<void(const std::string&)> observer) {
    error_observer_ = std::move(observer);
  }

  /// What a rank that has no inputs left does while others run backward: takes part in their
  /// collectives with zeros, and keeps its own order of arrival complete. Returns when they are
  /// done.
  void shadow_backward();

  /// A forward whose backward will be reduced has ended, and that backward has not.
  bool awaits_backward() const noexcept { return expects_hooks_; }
  const std::vector<Bucket>& buckets() const noexcept { return buckets_; }
  bool has_rebuilt_buckets() const noexcept { return rebuilt_; }
  const IterationTimes& times() const noexcept { return times_; }
  /// Parameters in the order of their gradients in the last synchronised backward.
  const std::vector<std::size_t>& ready_order() const noexcept { return ready_order_; }
  /// Parameters that the last synchronised backward did not reach, where that is found out.
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
  /// Whether gradients become shares of the mean on their way into the bucket.
  bool predivides() const noexcept;
  double scale_factor(DType dtype) const;
  void launch_ready_buckets();
  void launch(std::size_t bucket);
  BucketFuture start_reduction(const Bucket& bucket, std::size_t index, const Tensor& gradients,
                               Phase phase);
  void queue_finalisation(BackwardPass& pass);
  /// Of a collective that `backward_site_` led to.
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
  bool fills_at_launch_;                   // a bucket's gradients are copied in together
  std::vector<TensorPair> copies_;         // of the bucket at hand
  bool rebuilt_ = false;
  std::vector<std::size_t> arrival_;  // parameters in the order of their gradients, for the rebuild

  CallSite backward_site_ = CallSite::none();  // of the backward pass that reduces
  bool local_is_intended_ = false;             // gradients that come while none are expected
  bool expects_hooks_ = false;       // between prepare_for_backward and the end of its backward
  bool needs_finalise_ = false;      // a gradient is in a bucket that is not finalised
  bool unused_marked_ = false;       // the unused parameters of this backward are marked ready
  std::size_t next_bucket_ = 0;      // to be launched
  std::vector<std::uint8_t> ready_;  // by parameter, in this iteration
  std::vector<std::size_t> ready_order_;
  std::function<double()> divisor_source_;
  double divisor_ = 0;  // of this iteration; 0 until it is known
  std::function<void(const std::string&)> error_observer_;

  CommHook comm_hook_;
  bool has_prepared_backward_ = false;

  std::vector<std::size_t> unused_;  // parameters that this backward will not reach
  std::optional<UsedParameters> used_;

  bool graph_recorded_ = false;      // static_graph: the first iteration is over
  bool delay_queued_ = false;        // static_graph: the first iteration's reduction is arranged
  std::vector<int> hooks_expected_;  // static_graph: how often the first iteration reached each
  std::vector<int> hooks_left_;      // static_graph: in this iteration

  IterationTimes times_;
};

}  // namespace gradsync
