#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/autograd/parameter_hash.hpp"
#include "gradsync/ddp/distributed_data_parallel.hpp"
#include "gradsync/optim/optimizer.hpp"
#include "gradsync/testbed/loop/gradient_scaler.hpp"
#include "gradsync/testbed/loop/loop_observer.hpp"
#include "gradsync/testbed/record/report_keeper.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// Whether the parameters are hashed after `step`, even if it is not the last.
bool hash_is_due(const TrainSpec& train, std::int64_t step);

/// Records the position of a rank's loop in its report, and a StepRecord for each completed step.
///
/// A device may still be executing a step whose work has all been issued. The times, losses and
/// norms that the host needs are therefore read at the end of the step, when there is nothing left
/// to issue.
class StepRecorder final : public LoopObserver {
 public:
  /// What to record. All references must outlive the recorder.
  struct Rank {
    const Scenario& scenario;
    ReportKeeper& keeper;
    Clock& clock;
    const Model& model;
    const DistributedDataParallel& ddp;
    const Optimizer& optimizer;
    const GradientScaler& scaler;
    const std::vector<Tensor>& tensors;  ///< tensors to checksum after a step
  };
  explicit StepRecorder(Rank rank);

  /// Hash of the parameters after the last step; nullopt if none was computed.
  const std::optional<Hash128>& last_hash() const noexcept { return hash_; }

  void before_step(const LoopPosition& at) override;
  void before_data(const LoopPosition& at) override;
  void after_data(const LoopPosition& at, const Batch& batch) override;
  void before_forward(const LoopPosition& at) override;
  void after_forward(const LoopPosition& at, const Tensor& loss, bool reduces) override;
  void before_backward(const LoopPosition& at) override;
  void before_optimizer(const LoopPosition& at) override;
  void after_clip(const LoopPosition& at, const std::optional<Clipping>& clipping) override;
  void after_optimizer(const LoopPosition& at) override;
  void step_skipped(const LoopPosition& at, const std::string& reason) override;
  void loop_left(const LoopPosition& at, const std::string& reason) override;
  void before_join() override;
  void after_training(const LoopPosition& last) override;

 private:
  /// Stamps of one batch.
  struct BatchTimes {
    Seconds begin{0};
    Seconds drawn{0};
    Seconds computed{0};  ///< forward has ended
  };

  BatchTimes& times(const LoopPosition& at);
  void read_losses();
  void read_norm();
  void split_times();
  void take_hash();

  Rank rank_;
  // The current step. The clock may still write to it, so it must not move until its stamps are
  // settled.
  StepRecord record_;
  std::vector<BatchTimes> times_;
  std::vector<Tensor> losses_;
  std::vector<std::unique_ptr<HostRead>> losses_read_;
  std::vector<std::int64_t> sample_indices_;
  std::optional<Clipping> clipping_;
  std::optional<Hash128> hash_;
};

}  // namespace gradsync
