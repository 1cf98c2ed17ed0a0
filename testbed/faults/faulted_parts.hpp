#pragma once

#include "gradsync/comm/process_group.hpp"
#include "gradsync/testbed/faults/rank_faults.hpp"
#include "gradsync/testbed/loop/gradient_clipper.hpp"
#include "gradsync/testbed/loop/gradient_scaler.hpp"
#include "gradsync/testbed/loop/learning_rates.hpp"
#include "gradsync/testbed/loop/loop_policy.hpp"

/// The parts of a training loop (LoopParts) of a rank with faults. Without faults each behaves like
/// its base class. The RankFaults must outlive them.
namespace gradsync {

/// Faults of kind loss_scale, clip_before_unscale and clip_inside_accumulation.
class FaultedScaler final : public GradientScaler {
 public:
  FaultedScaler(const RankFaults& faults, const std::vector<ParameterPtr>& parameters)
      : GradientScaler(parameters), faults_(&faults) {}

  double scale(std::int64_t step) const override;
  void unscale(std::int64_t step) override;
  void step(Optimizer& optimizer, std::int64_t step) override;
  /// Called between the batches of a step, for the fault clip_inside_accumulation.
  void unscale_inside_accumulation(std::int64_t step) { divide_gradients(step); }

 private:
  bool unscales_late(std::int64_t step) const;

  const RankFaults* faults_;
};

/// Faults of kind clip and norm_reduced_again.
class FaultedClipper final : public GradientClipper {
 public:
  /// `group` and `device` must outlive it.
  FaultedClipper(const RankFaults& faults, ProcessGroup& group, Device& device,
                 const std::vector<ParameterPtr>& parameters, const Options& options)
      : GradientClipper(parameters, options), faults_(&faults), group_(&group), device_(&device) {}

  std::optional<Clipping> clip(const LoopPosition& at) override;

 private:
  Clipping clip_by_sum_over_ranks(const LoopPosition& at, double max_norm);

  const RankFaults* faults_;
  ProcessGroup* group_;
  Device* device_;
};

/// Faults of kind learning_rate.
class FaultedRates final : public LearningRates {
 public:
  FaultedRates(const RankFaults& faults, Optimizer& optimizer, const LrSchedule& schedule)
      : LearningRates(optimizer, schedule), faults_(&faults) {}

 protected:
  double base_rate(std::size_t group, std::int64_t step) const override;

 private:
  const RankFaults* faults_;
};

/// Faults of kind no_sync and leave_loop.
class FaultedPolicy final : public LoopPolicy {
 public:
  explicit FaultedPolicy(const RankFaults& faults) : faults_(&faults) {}

  bool reduces(const LoopPosition& at, bool by_default) const override;
  std::optional<std::string> leaves(std::int64_t step) const override;

 private:
  const RankFaults* faults_;
};

}  // namespace gradsync
