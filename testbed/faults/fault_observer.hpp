#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gradsync/ddp/distributed_data_parallel.hpp"
#include "gradsync/testbed/faults/fault_events.hpp"
#include "gradsync/testbed/faults/faulted_parts.hpp"
#include "gradsync/testbed/loop/loop_observer.hpp"

namespace gradsync {

/// Executes the faults of a rank at their points of its loop.
class FaultObserver final : public LoopObserver {
 public:
  /// The objects that the faults affect. All of them must outlive the observer.
  struct Rank {
    const RankFaults& faults;
    FaultEvents& events;
    Model& model;      ///< the trained model
    Model& ddp_model;  ///< the same model as DDP sees it
    Graph& graph;
    DistributedDataParallel& ddp;
    FaultedScaler& scaler;
    GradientClipper& clipper;
  };

  /// Construct after DDP has registered its hooks: a parameter whose hook fires twice needs another
  /// hook after them. Throws Error(kInvalidConfig) for a parameter that the model does not have.
  explicit FaultObserver(const Rank& rank);

  void before_data(const LoopPosition& at) override;
  void after_data(const LoopPosition& at, const Batch& batch) override;
  void before_forward(const LoopPosition& at) override;
  void before_backward(const LoopPosition& at) override;
  void after_backward(const LoopPosition& at, bool last) override;
  void before_optimizer(const LoopPosition& at) override;
  void after_step(const LoopPosition& at) override;
  void after_epoch(const LoopPosition& last) override;
  void after_training(const LoopPosition& last) override;

  /// Runs a forward pass without gradients on the last batch.
  void evaluate(bool through_ddp);

 private:
  void watch_gradients();
  void arm(const LoopPosition& at);
  std::vector<const Parameter*> unused_parameters(std::int64_t step) const;

  Rank rank_;
  std::shared_ptr<std::vector<std::string>> armed_;  // shared with the parameters' hooks
  Batch last_batch_;
};

}  // namespace gradsync
