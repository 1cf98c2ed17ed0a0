#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/comm/process_group.hpp"
#include "engine/ddp/ddp_options.hpp"
#include "engine/ddp/iteration_times.hpp"
#include "engine/ddp/loop_position.hpp"
#include "engine/models/model.hpp"

namespace gradsync {

class Reducer;

/// A bucket of the reducer as it is now, in launch order.
struct BucketInfo {
  std::int64_t index = 0;
  Bytes bytes = 0;
  std::int64_t elements = 0;
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> parameter_indices;  ///< among the trainable parameters
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
  DistributedDataParallel(Model& model, ProcessGroup& group, const DdpOptions& options = {});
  ~DistributedDataParallel();
  DistributedDataParallel(const DistributedDataParallel&) = delete;
  DistributedDataParallel& operator=(const DistributedDataParallel&) = delete;

  /// Runs the model. While gradients are on, the backward pass that follows is synchronised.
  std::vector<Variable> forward(const Batch& batch, Graph& graph);

  /// Where the training loop is; collectives are labelled with it.
  void set_position(std::int64_t epoch, std::int64_t step, std::int64_t micro_step = 0) {
    position_ = {epoch, step, micro_step};
  }

  const DdpOptions& options() const noexcept { return options_; }
  std::vector<BucketInfo> buckets() const;
  bool has_rebuilt_buckets() const noexcept;
  /// Of the last synchronised iteration.
  const IterationTimes& last_iteration() const noexcept;

 private:
  Model* model_;
  ProcessGroup* group_;
  DdpOptions options_;
  LoopPosition position_;
  std::shared_ptr<Reducer> reducer_;  // the parameters' hooks hold it weakly
};

}  // namespace gradsync
