#include "gradsync/testbed/loop/training_loop.hpp"

#include <algorithm>
#include <optional>

namespace gradsync {

void TrainingLoop::run() {
  std::int64_t batches_to_skip = options_.first_step * options_.accumulate_steps;
  for (std::int64_t epoch = 0; epoch < options_.epochs && !left_; ++epoch) {
    parts_.loader.start_epoch(options_.set_epoch ? epoch : 0);
    while (batches_to_skip > 0 && parts_.loader.next()) --batches_to_skip;
    Join join(parts_.ddp, options_.join);
    while (step_ < options_.steps && take_step(epoch)) ++step_;
    if (options_.join.enable) parts_.observer.before_join();
    join.finish();
    if (!left_) parts_.observer.after_epoch({epoch, step_ - 1});
  }
  parts_.observer.after_training({options_.epochs - 1, step_ - 1});
}

/// Returns false if the epoch has no more batches or the rank leaves its loop.
bool TrainingLoop::take_step(std::int64_t epoch) {
  const LoopPosition at{epoch, step_};
  if (const auto reason = parts_.policy.leaves(step_)) {
    left_ = true;
    parts_.observer.loop_left(at, *reason);
    return false;
  }
  std::string reason;
  try {
    return train_step(at);
  } catch (const SkippedStep& skipped) {
    reason = skipped.reason;
  }
  // Outside the catch block: in the simulator other ranks may run while an observer waits.
  parts_.observer.step_skipped(at, reason);
  return true;
}

/// Runs one optimizer step over one or several batches (gradient accumulation); returns false at
/// the end of the epoch.
bool TrainingLoop::train_step(const LoopPosition& begin) {
  auto& [loader, model, ddp, graph, scaler, clipper, learning_rates, optimizer, policy, observer] =
      parts_;
  observer.before_step(begin);
  const std::int64_t batches = std::min(options_.accumulate_steps, loader.batches_left());
  if (batches == 0) return false;

  optimizer.zero_grad();
  for (LoopPosition at = begin; at.micro_step < batches; ++at.micro_step) {
    const bool last = at.micro_step + 1 == batches;
    observer.before_data(at);
    Batch batch = *loader.next();
    batch.global_step = at.step;
    observer.after_data(at, batch);

    observer.before_forward(at);
    const bool reduces = policy.reduces(at, last || !options_.no_sync);
    std::optional<NoSyncGuard> no_sync;
    if (!reduces) no_sync.emplace(ddp);
    ddp.set_position(at.epoch, at.step, at.micro_step);
    const Variable loss = ddp.forward(model, batch, graph).front();
    observer.after_forward(at, loss.data, reduces);

    // The reducer's hooks launch buckets as gradients become ready, and its callback at the end of
    // the pass waits for all of them. When backward returns, every gradient is the mean over the
    // ranks.
    observer.before_backward(at);
    backward(graph, loss, scaler.scale(at.step) / static_cast<double>(batches));
    observer.after_backward(at, last);
  }

  observer.before_optimizer(begin);
  scaler.unscale(begin.step);
  observer.after_clip(begin, clipper.clip(begin));
  learning_rates.set(begin.step);
  scaler.step(optimizer, begin.step);
  observer.after_optimizer(begin);
  observer.after_step(begin);
  return true;
}

}  // namespace gradsync
