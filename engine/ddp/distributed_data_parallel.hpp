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

/// What DDP asks of a model: torch.nn.Module's parameters and buffers, in registration order.
template <class M>
concept HasParameters = requires(const M& model) {
  { model.parameters() } -> std::convertible_to<const std::vector<ParameterPtr>&>;
  { model.buffers() } -> std::convertible_to<const std::vector<BufferPtr>&>;
};

/// A bucket of the reducer as it is now, in launch order.
struct BucketInfo {
  std::int64_t index = 0;
  Bytes bytes = 0;
  std::int64_t elements = 0;
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> parameter_indices;  ///< among the parameters that are reduced
  std::vector<std::string> parameters;          ///< their names
};

/// Data-parallel training of one rank's replica: torch.nn.parallel.DistributedDataParallel.
///
/// The constructor checks that all ranks have the same parameters (an allgather of one number, a
/// broadcast of the shapes), broadcasts rank 0's parameters and buffers, and hangs hooks on the
/// parameters. From then on the backward pass of what `forward` returns leaves in every `grad` the
/// mean over all ranks, with the same bits on all of them.
///
/// Ordering: every rank must construct it, and call `forward` and backward, in the same order; that
/// is what makes their collectives meet. Belongs to one rank; not thread-safe. `group` must outlive
/// it; parameters and buffers are shared.
///
/// Errors: Error(kDesync) from the constructor on every rank when the replicas differ, naming the
/// first difference and the rank; Error(kMisuse) for what PyTorch refuses; CommError from a
/// collective.
class DistributedDataParallel {
 public:
  /// Of these parameters and buffers, in the same order on every rank; a Buffer's `data` may be
  /// replaced by one of its shape and dtype at any time.
  DistributedDataParallel(std::vector<ParameterPtr> parameters, std::vector<BufferPtr> buffers,
                          ProcessGroup& group, const DdpOptions& options = {},
                          const CallSite& site = CallSite(__builtin_FILE(), __builtin_LINE()));
  /// Of those of a model.
  template <HasParameters M>
  DistributedDataParallel(const M& model, ProcessGroup& group, const DdpOptions& options = {},
                          const CallSite& site = CallSite(__builtin_FILE(), __builtin_LINE()))
      : DistributedDataParallel(model.parameters(), model.buffers(), group, options, site) {}
  ~DistributedDataParallel();
  DistributedDataParallel(const DistributedDataParallel&) = delete;
  DistributedDataParallel& operator=(const DistributedDataParallel&) = delete;

  /// Runs `compute`, which builds the outputs on `graph`, and returns them. While gradients are on
  /// (and outside no_sync) the backward pass that follows is synchronised.
  std::vector<Variable> forward(Graph& graph, const std::function<std::vector<Variable>()>& compute,
                                const CallSite& site = CallSite(__builtin_FILE(),
                                                                __builtin_LINE()));
  /// The same for the model whose parameters these are: `model.forward(input, graph)`.
  template <class M, class Input>
  std::vector<Variable> forward(M& model, const Input& input, Graph& graph,
                                const CallSite& site = CallSite(__builtin_FILE(),
                                                                __builtin_LINE())) {
    return forward(
        graph, [&] { return model.forward(input, graph); }, site);
  }

  // For a program with an autograd of its own, in place of `forward` and Graph::backward. Each
  // iteration calls, on every rank:
  //
  //     ddp.prepare_for_forward();
  //     ...                           // the program's forward pass
  //     ddp.prepare_for_backward();
  //     ...                           // its backward pass; each time that a `grad` is complete:
  //     ddp.mark_gradient_ready(i);   //   a full bucket is sent while the pass goes on
  //     ddp.finalize_backward();      // now every `grad` is the mean over all ranks
  //
  // Any order of the gradients is right on any rank; the fastest is the same order in each
  // iteration. The rules of no_sync, join, hooks and options are those of `forward`.

  /// A training iteration begins: buckets are rebuilt, and buffers broadcast, where it is time to.
  void prepare_for_forward(const CallSite& site = CallSite(__builtin_FILE(), __builtin_LINE()));
  /// The backward pass begins. `unused`: parameters that it will not reach, by their position in
  /// the constructor's list. Throws Error(kMisuse) for such parameters unless
  /// find_unused_parameters is set; static_graph finds them out by itself.
  void prepare_for_backward(const std::vector<std::size_t>& unused = {},
                            const CallSite& site = CallSite(__builtin_FILE(), __builtin_LINE()));
  /// The gradient of this parameter, by its position in the constructor's list, is in its `grad`
  /// and complete (undefined: it is zero). The caller leaves it alone until finalize_backward
  /// returns. Throws Error(kMisuse) for a parameter that is not reduced, or the second time.
  void mark_gradient_ready(std::size_t parameter);
  /// The backward pass is over: waits for all buckets. Throws Error(kMisuse), naming them, if
  /// gradients were not marked.
  void finalize_backward();

  /// Where the training loop is; collectives are labelled with it. Without effect inside a Join.
  void set_position(std::int64_t epoch, std::int64_t step, std::int64_t micro_step = 0);

  /// What to send for a bucket in place of an all-reduce of the means; `name` is for reports. Once,
  /// before the first backward; on every rank.
  void register_comm_hook(CommHook hook, std::string name = "custom");
  const std::string& comm_hook() const noexcept { return comm_hook_name_; }

  const DdpOptions& options() const noexcept { return options_; }
  std::vector<BucketInfo> buckets() const;
  bool has_rebuilt_buckets() const noexcept;
  /// Of the last synchronised iteration.
  const IterationTimes& last_iteration() const noexcept;
  /// What DDP knows of itself, under PyTorch's names (get_ddp_logging_data).
  const DdpLoggingData& logging_data() const noexcept;
  /// Things that a user should know, each once, in the order in which they came up.
  const std::vector<std::string>& warnings() const noexcept { return warnings_.texts(); }

 private:
  friend class Join;
  friend class NoSyncGuard;

  /// A backward pass of the program's own, from prepare_for_backward to finalize_backward.
  struct OwnBackward {
    BackwardPass pass;
    bool reduces;
  };

  void begin_forward(bool trains, const CallSite& site);
  /// After a forward; true if its backward is to be reduced.
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
  /// One iteration of a rank without inputs; false when no rank has any.
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

/// Gradients stay local and accumulate while it lives (torch's no_sync): what counts is whether
/// `forward` is called inside. The next backward whose forward was outside reduces the sums.
///
/// A backward alone inside is reduced all the same, as in PyTorch; DDP warns of it.
class NoSyncGuard {
 public:
  explicit NoSyncGuard(DistributedDataParallel& ddp);
  ~NoSyncGuard();
  NoSyncGuard(const NoSyncGuard&) = delete;
  NoSyncGuard& operator=(const NoSyncGuard&) = delete;

 private:
  DistributedDataParallel& ddp_;
  bool before_;
  bool awaits_backward_;  // of a forward that was outside
};

}  // namespace gradsync
