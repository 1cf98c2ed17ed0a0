#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/autograd/graph.hpp"
#include "gradsync/autograd/parameter.hpp"
#include "gradsync/comm/process_group.hpp"
#include "gradsync/core/error.hpp"
#include "gradsync/ddp/comm_hook.hpp"
#include "gradsync/ddp/ddp_options.hpp"
#include "gradsync/ddp/iteration_times.hpp"
#include "gradsync/ddp/loop_position.hpp"
#include "gradsync/ddp/warnings.hpp"

namespace gradsync {

class DdpLogger;
class JoinProtocol;
class Reducer;
struct DdpLoggingData;
struct JoinOptions;
struct Replica;

/// The interface DDP needs from a model: parameters and buffers in registration order, as in
/// torch.nn.Module.
template <class M>
concept HasParameters = requires(const M& model) {
  { model.parameters() } -> std::convertible_to<const std::vector<ParameterPtr>&>;
  { model.buffers() } -> std::convertible_to<const std::vector<BufferPtr>&>;
};

/// Snapshot of one of the reducer's buckets, in launch order.
struct BucketInfo {
  std::int64_t index = 0;
  Bytes bytes = 0;
  std::int64_t elements = 0;
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> parameter_indices;  ///< indices among the reduced parameters
  std::vector<std::string> parameters;          ///< names of the parameters
};

/// Data-parallel training of one rank's replica: torch.nn.parallel.DistributedDataParallel.
///
/// The constructor checks that all ranks have the same parameters (an allgather of one number, a
/// broadcast of the shapes), broadcasts rank 0's parameters and buffers, and registers a gradient
/// hook on every parameter. After each backward pass from the outputs of `forward`, every `grad`
/// holds the mean over all ranks, with identical bits on all of them.
///
/// Ordering: every rank must construct DDP and call `forward` and backward in the same order, so
/// that their collectives match. Belongs to one rank; not thread-safe. `group` must outlive this
/// object; parameters and buffers are shared.
///
/// Errors: Error(kDesync) from the constructor on every rank if the replicas differ, naming the
/// first difference and the rank; Error(kMisuse) for uses that PyTorch rejects; CommError from a
/// failed collective.
class DistributedDataParallel {
 public:
  /// Parameters and buffers must be in the same order on every rank. A Buffer's `data` may be
  /// replaced at any time by a tensor of the same shape and dtype.
  DistributedDataParallel(std::vector<ParameterPtr> parameters, std::vector<BufferPtr> buffers,
                          ProcessGroup& group, const DdpOptions& options = {},
                          const CallSite& site = CallSite(__builtin_FILE(), __builtin_LINE()));
  /// Uses the parameters and buffers of `model`.
  template <HasParameters M>
  DistributedDataParallel(const M& model, ProcessGroup& group, const DdpOptions& options = {},
                          const CallSite& site = CallSite(__builtin_FILE(), __builtin_LINE()))
      : DistributedDataParallel(model.parameters(), model.buffers(), group, options, site) {}
  ~DistributedDataParallel();
  DistributedDataParallel(const DistributedDataParallel&) = delete;
  DistributedDataParallel& operator=(const DistributedDataParallel&) = delete;

  /// Runs `compute`, which builds the outputs on `graph`, and returns them. The following backward
  /// pass is synchronized, unless gradients are disabled or no_sync is active.
  std::vector<Variable> forward(Graph& graph, const std::function<std::vector<Variable>()>& compute,
                                const CallSite& site = CallSite(__builtin_FILE(),
                                                                __builtin_LINE()));
  /// Same, for the model that owns these parameters: calls `model.forward(input, graph)`.
  template <class M, class Input>
  std::vector<Variable> forward(M& model, const Input& input, Graph& graph,
                                const CallSite& site = CallSite(__builtin_FILE(),
                                                                __builtin_LINE())) {
    return forward(
        graph, [&] { return model.forward(input, graph); }, site);
  }

  // For programs with their own autograd, instead of `forward` and Graph::backward. In each
  // iteration, every rank calls:
  //
  // ddp.prepare_for_forward();
  //     ...                           // the program's forward pass
  //     ddp.prepare_for_backward();
  //     ...                           // its backward pass; whenever a `grad` is complete:
  //     ddp.mark_gradient_ready(i);   //   launches full buckets while the pass continues
  //     ddp.finalize_backward();      // now every `grad` is the mean over all ranks
  //
  // Gradients may become ready in any order on any rank; the same order in every iteration is
  // fastest. no_sync, join, hooks and options work as with `forward`.

  /// Starts a training iteration. Rebuilds the buckets and broadcasts the buffers when due.
  void prepare_for_forward(const CallSite& site = CallSite(__builtin_FILE(), __builtin_LINE()));
  /// Starts the backward pass. `unused`: parameters it will not reach, as indices into the
  /// constructor's list. Throws Error(kMisuse) if there are any and find_unused_parameters is not
  /// set; static_graph detects them by itself.
  void prepare_for_backward(const std::vector<std::size_t>& unused = {},
                            const CallSite& site = CallSite(__builtin_FILE(), __builtin_LINE()));
  /// Marks a parameter's `grad` as complete (an undefined `grad` means zero). `parameter` is an
  /// index into the constructor's list. Do not touch `grad` until finalize_backward returns. Throws
  /// Error(kMisuse) if the parameter is not reduced or is already marked.
  void mark_gradient_ready(std::size_t parameter);
  /// Ends the backward pass: waits for all buckets. Throws Error(kMisuse), naming the parameters,
  /// if any gradient was not marked.
  void finalize_backward();

  /// Sets the position in the training loop that labels the collectives. Ignored inside a Join.
  void set_position(std::int64_t epoch, std::int64_t step, std::int64_t micro_step = 0);

  /// Replaces the averaging all-reduce of each bucket by `hook`; `name` is used in reports. Call it
  /// once, before the first backward, on every rank.
  void register_comm_hook(CommHook hook, std::string name = "custom");
  const std::string& comm_hook() const noexcept { return comm_hook_name_; }

  const DdpOptions& options() const noexcept { return options_; }
  std::vector<BucketInfo> buckets() const;
  bool has_rebuilt_buckets() const noexcept;
  /// Timestamps of the last synchronized iteration.
  const IterationTimes& last_iteration() const noexcept;
  /// DDP's logging data, under PyTorch's names (get_ddp_logging_data).
  const DdpLoggingData& logging_data() const noexcept;
  /// Warnings for the user, without repetition, in order of occurrence.
  const std::vector<std::string>& warnings() const noexcept { return warnings_.texts(); }

 private:
  friend class Join;
  friend class NoSyncGuard;

  /// A backward pass driven by the program, from prepare_for_backward to finalize_backward.
  struct OwnBackward {
    BackwardPass pass;
    bool reduces;
  };

  void begin_forward(bool trains, const CallSite& site);
  /// Ends a forward; returns whether its backward will be reduced.
  bool end_forward(bool trains);
  std::size_t reduced_index(std::size_t parameter) const;
  Error misuse(const std::string& text) const;

  std::vector<Tensor> buffers() const;
  void broadcast_state(int root, const CollectiveOptions& options);
  bool buffers_are_due() const;
  void sync_buffers(int root, Phase phase);

  // For Join
  void enter_join(const JoinOptions& options);
  void leave_join();
  void next_joined_iteration();
  /// Runs one iteration of a rank without inputs; returns false if no rank has any.
  bool shadow_iteration();
  void broadcast_final_state(bool trained_last);
  void warn(const std::string& text) { warnings_.once(text); }

  std::unique_ptr<const Replica> replica_;
  ProcessGroup* group_;
  DdpOptions options_;
  LoopPosition position_;
  Warnings warnings_;
  std::shared_ptr<Reducer> reducer_;  // the parameters' hooks hold it weakly
  std::shared_ptr<DdpLogger> logger_;
  std::string comm_hook_name_ = "allreduce";

  bool require_backward_grad_sync_ = true;  // false inside no_sync
  bool require_forward_param_sync_ = true;  // buffers: false after a forward that did not sync
  std::optional<OwnBackward> own_backward_;

  std::unique_ptr<JoinProtocol> join_;
  LoopPosition position_before_join_;
  std::int64_t joined_iterations_ = 0;  // over all joins; equal on all ranks
};

/// Disables gradient synchronization for a scope (torch's no_sync): gradients accumulate locally.
/// What counts is where `forward` is called, as in PyTorch: the next backward whose forward ran
/// outside reduces the accumulated sums.
///
/// If only the backward runs inside, it is still reduced; DDP warns about it.
class NoSyncGuard {
 public:
  explicit NoSyncGuard(DistributedDataParallel& ddp);
  ~NoSyncGuard();
  NoSyncGuard(const NoSyncGuard&) = delete;
  NoSyncGuard& operator=(const NoSyncGuard&) = delete;

 private:
  DistributedDataParallel& ddp_;
  bool before_;
  bool awaits_backward_;  // for a forward that ran outside
};

}  // namespace gradsync
