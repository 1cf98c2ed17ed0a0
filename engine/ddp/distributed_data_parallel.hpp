#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gradsync/comm/process_group.hpp"
#include "gradsync/ddp/comm_hook.hpp"
#include "gradsync/ddp/ddp_options.hpp"
#include "gradsync/ddp/iteration_times.hpp"
#include "gradsync/ddp/loop_position.hpp"
#include "gradsync/ddp/warnings.hpp"
#include "gradsync/models/model.hpp"

namespace gradsync {

class DdpLogger;
class JoinProtocol;
class Reducer;
struct DdpLoggingData;
struct JoinOptions;

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
/// The constructor checks that all ranks have the same model (an allgather of one number, a
/// broadcast of the parameters' shapes), broadcasts rank 0's parameters and buffers, and hangs
/// hooks on the parameters. From then on the backward pass of what `forward` returns leaves in
/// every `grad` the mean over all ranks, with the same bits on all of them.
///
/// Ordering: every rank must construct it, and call `forward` and backward, in the same order; that
/// is what makes their collectives meet. Belongs to one rank; not thread-safe. `model` and `group`
/// must outlive it.
///
/// Errors: Error(kDesync) from the constructor on every rank when the models differ, naming the
/// first difference and the rank; Error(kMisuse) for what PyTorch refuses; CommError from a
/// collective.
class DistributedDataParallel {
 public:
  DistributedDataParallel(Model& model, ProcessGroup& group, const DdpOptions& options = {},
                          const CallSite& site = CallSite(__builtin_FILE(), __builtin_LINE()));
  ~DistributedDataParallel();
  DistributedDataParallel(const DistributedDataParallel&) = delete;
  DistributedDataParallel& operator=(const DistributedDataParallel&) = delete;

  /// Runs the model. While gradients are on (and outside no_sync) the backward pass that follows is
  /// synchronised.
  std::vector<Variable> forward(const Batch& batch, Graph& graph,
                                const CallSite& site = CallSite(__builtin_FILE(),
                                                                __builtin_LINE()));

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

  Model* model_;
  ProcessGroup* group_;
  DdpOptions options_;
  LoopPosition position_;
  Warnings warnings_;
  std::shared_ptr<Reducer> reducer_;  // the parameters' hooks hold it weakly
  std::shared_ptr<DdpLogger> logger_;
  std::string comm_hook_name_ = "allreduce";

  bool require_backward_grad_sync_ = true;  // false inside no_sync
  bool require_forward_param_sync_ = true;  // buffers: false after a forward that did not sync

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
