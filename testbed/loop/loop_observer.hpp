#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gradsync/ddp/loop_position.hpp"
#include "gradsync/models/model.hpp"
#include "gradsync/testbed/loop/gradient_clipper.hpp"

namespace gradsync {

/// Thrown by an observer: the step under way is abandoned and the loop goes on with the next one,
/// as `continue` does in a program.
struct SkippedStep {
  std::string reason;
};

/// Sees a training loop at the points below, in this order:
///
///     each epoch
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
/// An observer may let time pass, communicate, or throw: an Error ends the rank, SkippedStep the
/// step. What the loop does it changes only through the loop's parts (LoopParts).
///
/// Called on the rank's thread or actor.
class LoopObserver {
 public:
  virtual ~LoopObserver() = default;

  /// The rank turns to its next step. There is none if the epoch has no batch left; nothing but
  /// `before_join` follows then.
  virtual void before_step(const LoopPosition&) {}

  virtual void before_data(const LoopPosition&) {}
  virtual void after_data(const LoopPosition&, const Batch&) {}

  virtual void before_forward(const LoopPosition&) {}
  /// `loss`: a scalar, of this batch alone. `reduces`: the backward pass that follows is
  /// synchronized, which it is not inside no_sync.
  virtual void after_forward(const LoopPosition&, const Tensor& /*loss*/, bool /*reduces*/) {}

  virtual void before_backward(const LoopPosition&) {}
  /// The gradients of this batch are accumulated, and reduced where the pass was synchronized.
  /// `last`: it was the last batch of the step.
  virtual void after_backward(const LoopPosition&, bool /*last*/) {}

  virtual void before_optimizer(const LoopPosition&) {}
  /// nullopt: the job does not clip.
  virtual void after_clip(const LoopPosition&, const std::optional<Clipping>&) {}
  /// The parameters are updated.
  virtual void after_optimizer(const LoopPosition&) {}

  /// Between two steps: where a program evaluates, saves and logs.
  virtual void after_step(const LoopPosition&) {}
  /// In place of the rest of a step that was abandoned.
  virtual void step_skipped(const LoopPosition&, const std::string& /*reason*/) {}
  /// LoopPolicy::leaves has ended the loop before this step. Only `before_join` and
  /// `after_training` follow.
  virtual void loop_left(const LoopPosition&, const std::string& /*reason*/) {}

  /// Only where the job trains with Join: this rank has no inputs left.
  virtual void before_join() {}
  /// `last`: the last step that was taken or skipped, of any epoch; -1 where there was none.
  virtual void after_epoch(const LoopPosition& /*last*/) {}
  virtual void after_training(const LoopPosition& /*last*/) {}
};

/// Several observers as one. The first is the outermost: a `before_` point reaches them in their
/// order, every other point in reverse, so the times that the first one takes include what the
/// others spend.
class LoopObservers final : public LoopObserver {
 public:
  /// `observer` must outlive this.
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
