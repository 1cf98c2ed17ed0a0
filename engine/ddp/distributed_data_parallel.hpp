#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/comm/process_group.hpp"
#include "engine/ddp/ddp_options.hpp"
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

/// PyTorch's five timestamps of a synchronised iteration, absolute on the rank's clock; negative
/// where the iteration has not come there.
struct IterationTimes {
  Seconds forward_start{-1};
  Seconds backward_compute_start{-1};  ///< forward is done
  Seconds backward_compute_end{-1};    ///< the last hook has run; what follows is exposed waiting
  Seconds backward_comm_start{-1};     ///< the first bucket was launched
  Seconds backward_comm_end{-1};       ///< the last bucket's result is in the gradients
};

/// Data-parallel training of one rank's replica: torch.nn.parallel.DistributedDataParallel.
///
/// The constructor checks that all ranks have the same parameters (an allgather of their count, a
/// broadcast of their shapes), broadcasts rank 0's state, and hangs hooks on the parameters. From
/// then on `forward` prepares the reducer, and the backward pass of what it returned leaves in
/// every `grad` the mean over all ranks, with the same bits on all of them.
///
/// Collectives, in order: see docs; every rank must construct, and call `forward` and backward, in
/// the same order. Belongs to one rank; not thread-safe. `model` and `group` must outlive it.
///
/// Errors: Error(kDesync) from the constructor of every rank when parameters differ, naming the
/// first that differs and the rank; Error(kMisuse) for uses that PyTorch refuses; CommError from a
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
  void set_position(std::int64_t epoch, std::int64_t step, std::int64_t micro_step = 0);

  const DdpOptions& options() const noexcept;
  std::vector<BucketInfo> buckets() const;
  bool has_rebuilt_buckets() const noexcept;
  /// Of the last synchronised iteration.
  const IterationTimes& last_iteration() const noexcept;

 private:
  Model* model_;
  ProcessGroup* group_;
  DdpOptions options_;
  std::shared_ptr<Reducer> reducer_;
};

}  // namespace gradsync
