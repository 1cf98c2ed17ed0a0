#include "gradsync/testbed/record/step_recorder.hpp"

#include <utility>

#include "gradsync/testbed/record/rank_description.hpp"

namespace gradsync {

StepRecorder::StepRecorder(Rank rank)
    : rank_(std::move(rank)),
      times_(static_cast<std::size_t>(rank_.scenario.train.accumulate_steps)) {}

StepRecorder::BatchTimes& StepRecorder::times(const LoopPosition& at) {
  return times_[static_cast<std::size_t>(at.micro_step)];
}

void StepRecorder::before_step(const LoopPosition& at) {
  rank_.keeper.enter(Phase::kData);
  record_ = StepRecord{};
  record_.epoch = at.epoch;
  record_.step = at.step;
  record_.batches = 0;
  record_.reductions = 0;
  record_.loss_scale = rank_.scaler.scale(at.step);
  losses_.clear();
  losses_read_.clear();
  sample_indices_.clear();
  clipping_.reset();
  rank_.clock.stamp(record_.begin);
}

void StepRecorder::before_data(const LoopPosition& at) {
  rank_.clock.stamp(times(at).begin);
  rank_.keeper.enter(Phase::kData);
}

void StepRecorder::after_data(const LoopPosition& at, const Batch& batch) {
  ++record_.batches;
  rank_.keeper.add_samples(at.epoch, batch.sample_indices);
  sample_indices_.insert(sample_indices_.end(), batch.sample_indices.begin(),
                         batch.sample_indices.end());
  rank_.clock.stamp(times(at).drawn);
}

void StepRecorder::before_forward(const LoopPosition&) {
  rank_.keeper.enter(Phase::kForward);
}

void StepRecorder::after_forward(const LoopPosition& at, const Tensor& loss, bool reduces) {
  rank_.clock.stamp(times(at).computed);
  record_.last_batch_reduced = reduces;
  if (reduces) ++record_.reductions;
  losses_.push_back(loss);
  if (rank_.ddp.has_rebuilt_buckets() != rank_.keeper.report().rebuilt_buckets) {
    describe_buckets(rank_.keeper, rank_.ddp);
  }
}

void StepRecorder::before_backward(const LoopPosition&) {
  rank_.keeper.enter(Phase::kBackward);
}

void StepRecorder::before_optimizer(const LoopPosition&) {
  record_.samples = std::ssize(sample_indices_);
  record_.sample_hash = hash_indices(sample_indices_).hex();
  rank_.clock.stamp(record_.backward_end);
  rank_.keeper.update([&](RankReport& report) { report.warnings = rank_.ddp.warnings(); });
  rank_.keeper.enter(Phase::kOptimizer);
  for (const Tensor& loss : losses_) {
    if (!loss.is_meta()) losses_read_.push_back(loss.device().read(loss));
  }
}

void StepRecorder::after_clip(const LoopPosition& at, const std::optional<Clipping>& clipping) {
  clipping_ = clipping;
  if (clipping && rank_.scaler.divisions(at.step) == 0) record_.scale_at_clip = record_.loss_scale;
  rank_.clock.stamp(record_.clip_end);
}

void StepRecorder::after_optimizer(const LoopPosition& at) {
  record_.learning_rate = rank_.optimizer.learning_rate();
  record_.unscales = rank_.scaler.divisions(at.step);
  rank_.clock.stamp(record_.optimizer_end);
  // The only wait of a step: once the last stamp has settled, all pending reads are complete.
  rank_.clock.settle_stamps();
  read_losses();
  read_norm();
  split_times();
  rank_.keeper.update([](RankReport& report) { ++report.steps_completed; });

  rank_.keeper.enter(Phase::kCheck);
  take_hash();
  record_.end = rank_.clock.now();
  rank_.keeper.add_step(record_);
}

/// The loss of a step is the mean over its batches, as its gradient is.
void StepRecorder::read_losses() {
  for (const auto& loss : losses_read_) {
    record_.loss = record_.loss.value_or(0) + loss->value() / static_cast<double>(record_.batches);
  }
  losses_.clear();
  losses_read_.clear();
}

void StepRecorder::read_norm() {
  if (!clipping_) return;
  record_.grad_norm = clipping_->norm != nullptr ? clipping_->norm->value() : 0;
  record_.clip_norm = clipping_->other_norm;
  record_.clip_coefficient =
      clip_coefficient(record_.clip_norm.value_or(*record_.grad_norm), clipping_->max_norm);
  clipping_.reset();
}

/// Converts the stamps of all batches to one sequence of phases.
void StepRecorder::split_times() {
  Seconds data{0};
  Seconds forward{0};
  for (std::size_t i = 0; i < static_cast<std::size_t>(record_.batches); ++i) {
    data += times_[i].drawn - (i == 0 ? record_.begin : times_[i].begin);
    forward += times_[i].computed - times_[i].drawn;
  }
  record_.data_end = record_.begin + data;
  record_.forward_end = record_.data_end + forward;
  record_.backward_compute_end = record_.backward_end;
  if (!record_.last_batch_reduced) return;  // no synchronized iteration, so DDP has no times
  const IterationTimes& iteration = rank_.ddp.last_iteration();
  record_.backward_compute_end = iteration.backward_compute_end;
  record_.comm_begin = iteration.backward_comm_start;
  record_.comm_end = iteration.backward_comm_end;
}

void StepRecorder::take_hash() {
  hash_.reset();
  const bool last = record_.step + 1 == rank_.keeper.report().steps_planned;
  if (!last && !hash_is_due(rank_.scenario.train, record_.step)) return;
  hash_ = hash_parameters(rank_.model.parameters());
  if (!hash_) return;
  record_.parameter_hash = hash_->hex();
  record_.checksums = checksum(rank_.tensors);
}

void StepRecorder::step_skipped(const LoopPosition&, const std::string& reason) {
  rank_.clock.forget_stamps();  // they would be written into an abandoned step
  rank_.keeper.note(RankEventKind::kSkipped, reason);
  rank_.keeper.update([](RankReport& report) { ++report.steps_completed; });
}

void StepRecorder::loop_left(const LoopPosition&, const std::string& reason) {
  rank_.keeper.note(RankEventKind::kLeftLoop, reason);
}

void StepRecorder::before_join() {
  rank_.keeper.enter(Phase::kJoin);
}

void StepRecorder::after_training(const LoopPosition&) {
  keep_logging_data(rank_.keeper, rank_.ddp);
  if (const auto hash = hash_parameters(rank_.model.parameters())) {
    rank_.keeper.update([&](RankReport& report) { report.final_parameter_hash = hash->hex(); });
  }
}

bool hash_is_due(const TrainSpec& train, std::int64_t step) {
  return train.hash_every > 0 && (step + 1) % train.hash_every == 0;
}

}  // namespace gradsync
