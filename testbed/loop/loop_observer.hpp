#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gradsync/ddp/loop_position.hpp"
#include "gradsync/models/model.hpp"
#include "gradsync/testbed/loop/gradient_clipper.hpp"

namespace gradsync {

/// Thrown by an observer: abandons the current step and continues the loop with the next one, like
/// `continue`.
struct SkippedStep {
  std::string reason;
};

/// Observes a training loop. The calls come in this order:
///
/// each epoch
///       each step
///         before_step
///         each batch of the step (one, or several with gradient accumulation)
///           before_data      after_data
///           before_forward   after_forward
///           before_backward  after_backward
///         before_optimizer   after_clip   after_optimizer
///         after_step
///       before_join
///       after_epoch
///     after_training
///
/// An observer may spend time, communicate, or throw: an Error ends the rank, SkippedStep the step.
/// To change what the loop does, subclass its parts (LoopParts).
///
/// Called on the rank's thread or actor.
class LoopObserver {
 public:
  virtual ~LoopObserver() = default;

  /// The rank starts its next step. If the epoch has no batch left, only `before_join` follows.
  virtual void before_step(const LoopPosition&) {}

  virtual void before_data(const LoopPosition&) {}
  virtual void after_data(const LoopPosition&, const Batch&) {}

  virtual void before_forward(const LoopPosition&) {}
  /// `loss`: a scalar, of this batch only. `reduces`: whether the following backward pass is
  /// synchronized (false inside no_sync).
  virtual void after_forward(const LoopPosition&, const Tensor& /*loss*/, bool /*reduces*/) {}

  virtual void before_backward(const LoopPosition&) {}
  /// The gradients of this batch are accumulated, and reduced if the pass was synchronized. `last`:
  /// whether it was the last batch of the step.
  virtual void after_backward(const LoopPosition&, bool /*last*/) {}

  virtual void before_optimizer(const LoopPosition&) {}
  /// nullopt if the job does not clip.
  virtual void after_clip(const LoopPosition&, const std::optional<Clipping>&) {}
  /// The parameters are updated.
  virtual void after_optimizer(const LoopPosition&) {}

  /// Between two steps: here programs evaluate, save checkpoints and log.
  virtual void after_step(const LoopPosition&) {}
  /// Replaces the remaining calls of an abandoned step.
  virtual void step_skipped(const LoopPosition&, const std::string& /*reason*/) {}
  /// LoopPolicy::leaves ended the loop before this step. Only `before_join` and `after_training`
  /// follow.
  virtual void loop_left(const LoopPosition&, const std::string& /*reason*/) {}

  /// Only for jobs that train with Join: this rank has no inputs left.
  virtual void before_join() {}
  /// `last`: the last step taken or skipped, of any epoch; -1 if there was none.
  virtual void after_epoch(const LoopPosition& /*last*/) {}
  virtual void after_training(const LoopPosition& /*last*/) {}
};

/// Combines several observers. The first is the outermost: `before_` calls go in order, all other
/// calls in reverse order, so the times measured by the first observer include the time spent in
/// the others.
class LoopObservers final : public LoopObserver {
 public:
  /// `observer` must outlive this object.
  void add(LoopObserver& observer) { observers_.push_back(&observer); }

  void before_step(const LoopPosition& at) override;
  void before_data(const LoopPosition& at) override;
  void after_data(const LoopPosition& at, const Batch& batch) override;
  void before_forward(const LoopPosition& at) override;
  void after_forward(const LoopPosition& at, const Tensor& loss, bool reduces) override;
  void before_backward(const LoopPosition& at) override;
  void after_backward(const LoopPosition& at, bool last) override;
  void before_optimizer(const LoopPosition& at) override;
  void after_clip(const LoopPosition& at, const std::optional<Clipping>& clipping) override;
  void after_optimizer(const LoopPosition& at) override;
  void after_step(const LoopPosition& at) override;
  void step_skipped(const LoopPosition& at, const std::string& reason) override;
  void loop_left(const LoopPosition& at, const std::string& reason) override;
  void before_join() override;
  void after_epoch(const LoopPosition& last) override;
  void after_training(const LoopPosition& last) override;

 private:
  template <typename... Parameters, typename... Arguments>
  void inwards(void (LoopObserver::*point)(Parameters...), const Arguments&... arguments);
  template <typename... Parameters, typename... Arguments>
  void outwards(void (LoopObserver::*point)(Parameters...), const Arguments&... arguments);

  std::vector<LoopObserver*> observers_;
};

}  // namespace gradsync
