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

/// Whether the parameters are hashed after `step`, though it is not the last.
bool hash_is_due(const TrainSpec& train, std::int64_t step);

/// Enters into a rank's report where its loop is, and a StepRecord for each step that it completes.
///
/// A device may still be busy with a step when all of it has been issued. So the times, losses and
/// norms that the host wants to know are asked for at the end of the step, when there is nothing
/// left to issue.
class StepRecorder final : public LoopObserver {
 public:
  /// What is recorded. All of it must outlive the recorder.
  struct Rank {
    const Scenario& scenario;
    ReportKeeper& keeper;
    Clock& clock;
    const Model& model;
    const DistributedDataParallel& ddp;
    const Optimizer& optimizer;
    const GradientScaler& scaler;
    const std::vector<Tensor>& tensors;  ///< whose checksums are taken after a step
  };
  explicit StepRecorder(Rank rank);

  /// Of the parameters after the last step; nothing where none was taken.
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
    Seconds computed{0};  ///< forward is done
  };

  BatchTimes& times(const LoopPosition& at);
  void read_losses();
  void read_norm();
  void split_times();
  void take_hash();

  Rank rank_;
  // Of the step under way. The clock may still write into it: none of it moves until then.
  StepRecord record_;
  std::vector<BatchTimes> times_;
  std::vector<Tensor> losses_;
  std::vector<std::unique_ptr<HostRead>> losses_read_;
  std::vector<std::int64_t> sample_indices_;
  std::optional<Clipping> clipping_;
  std::optional<Hash128> hash_;
};

}  // namespace gradsync
