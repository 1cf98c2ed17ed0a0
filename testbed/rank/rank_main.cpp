#include "gradsync/testbed/rank/rank_main.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "gradsync/autograd/parameter_hash.hpp"
#include "gradsync/comm/comm_error.hpp"
#include "gradsync/ddp/control_tensor.hpp"
#include "gradsync/ddp/distributed_data_parallel.hpp"
#include "gradsync/ddp/replica_check.hpp"
#include "gradsync/optim/clip_grad_norm.hpp"
#include "gradsync/tensor/host_read.hpp"
#include "gradsync/testbed/faults/clean_up_fault.hpp"
#include "gradsync/testbed/faults/fault_injector.hpp"
#include "gradsync/testbed/faults/rank_imperfections.hpp"
#include "gradsync/testbed/faults/slowed_clock.hpp"
#include "gradsync/testbed/rank/device_check.hpp"
#include "gradsync/testbed/rank/hash_check.hpp"
#include "gradsync/testbed/record/report_keeper.hpp"
#include "gradsync/testbed/scenario/shard_plan.hpp"

namespace gradsync {
namespace {

/// Floating-point operations an element, for the simulated clock: squaring, adding and scaling in
/// the clip, and the arithmetic of an update as torch/optim/adamw.py and sgd.py write it.
constexpr double kClipFlops = 3;
constexpr double kAdamWFlops = 14;
constexpr double kSgdFlops = 6;

/// From an error of a rank's own until the others are told. They need it to come to where they wait
/// for this rank, or to the same error of their own: only then do their records say which of the
/// two it is. A process that raises takes longer than that to go.
constexpr Seconds kTellOthersAfter{0.3};

/// The training loop of one rank.
class Training {
 public:
  Training(const Scenario& scenario, const RankWorld& world, RankReport& report,
           ReportKeeper& keeper)
      : scenario_(scenario),
        group_(*world.process_group),
        faults_(scenario.faults, seams(world)),
        imperfections_(scenario.imperfections, world.process_group->rank()),
        slowed_clock_(*world.clock, compute_factor(0)),
        clock_(slowed_clock_),
        device_(*world.device),
        on_step_(world.on_step),
        report_(report),
        keeper_(keeper),
        inputs_(world.inputs ? world.inputs : load_inputs(scenario)),
        sampler_options_(faults_.sampler_options(sampler_options(scenario.sampler))),
        loader_(*inputs_->dataset,
                DistributedSampler(inputs_->dataset->size(), group_.size(),
                                   faults_.sampler_rank(group_.rank()), sampler_options_),
                scenario.train.batch_size, device_),
        model_(make_model(scenario, *inputs_, group_.rank(), group_.size(), device_)),
        graph_(clock_) {
    describe_plan();
    if (faults_present(FaultKind::kDevice)) claim_device();
    faults_.happen(FaultPoint::kInit, {});
    ddp_model_ = faults_.model_for_ddp(*model_);
    describe_tensors();
    ddp_.emplace(*ddp_model_, group_, ddp_options(scenario.ddp));
    faults_.watch_gradients(*model_);
    register_comm_hook(*ddp_, scenario.ddp);
    optimizer_ = make_optimizer(scenario.optimizer, model_->parameters());
    for (std::size_t group = 0; group < optimizer_->group_count(); ++group) {
      base_rates_.push_back(optimizer_->learning_rate(group));
    }
    lr_schedule_ = lr_schedule(scenario.optimizer.lr_schedule);
    describe_buckets();
  }

  void run() {
    std::int64_t batches_to_skip = faults_.first_step() * scenario_.train.accumulate_steps;
    for (std::int64_t epoch = 0; epoch < scenario_.train.epochs && !left_loop_; ++epoch) {
      loader_.start_epoch(faults_.sets_epoch(scenario_.sampler.set_epoch) ? epoch : 0);
      for (; batches_to_skip > 0 && loader_.batches_left() > 0; --batches_to_skip) loader_.next();
      Join join(*ddp_, join_options(scenario_.ddp.join));
      while (report_.steps_completed < report_.steps_planned) {
        if (leaves_loop() || !step(epoch)) break;
      }
      if (scenario_.ddp.join.enable) keeper_.enter(Phase::kJoin);
      join.finish();
      if (!left_loop_) happen_outside_steps(FaultPoint::kEpochEnd, epoch);
    }
    happen_outside_steps(FaultPoint::kTrainingEnd, scenario_.train.epochs - 1);
    keep_logging_data();
    if (const auto hash = hash_parameters(model_->parameters())) {
      keeper_.update([&](RankReport& report) { report.final_parameter_hash = hash->hex(); });
    }
  }

 private:
  /// What the faults need of this rank.
  FaultInjector::Rank seams(const RankWorld& world) {
    FaultInjector::Rank rank;
    rank.group = world.process_group;
    rank.clock = world.clock;
    rank.device = world.device;
    rank.enter = [this](Phase phase) { keeper_.enter(phase); };
    rank.raised = [this](const std::string& what) { keeper_.note(RankEventKind::kRaised, what); };
    rank.evaluate = [this](bool through_ddp) { evaluate(through_ddp); };
    rank.end_process = world.end_process;
    return rank;
  }

  double compute_factor(std::int64_t step) const {
    const FaultSpec* slow = faults_.find(FaultKind::kSlow);
    return (slow != nullptr ? slow->factor : 1) * imperfections_.compute_factor(step);
  }

  /// On any rank: what all ranks have to do together where one has this fault.
  bool faults_present(FaultKind kind) const {
    return std::any_of(scenario_.faults.begin(), scenario_.faults.end(),
                       [&](const FaultSpec& fault) { return fault.kind == kind; });
  }

  void claim_device() {
    const FaultSpec* fault = faults_.find(FaultKind::kDevice);
    const std::int64_t claimed = fault != nullptr ? fault->device : group_.rank();
    keeper_.update([&](RankReport& report) { report.device_claimed = claimed; });
    check_devices(group_, device_, claimed);
  }

  void happen_outside_steps(FaultPoint point, std::int64_t epoch) {
    if (faults_.empty()) return;
    keeper_.enter(Phase::kUser);
    faults_.happen(point, {epoch, report_.steps_completed - 1, 0});
  }

  bool leaves_loop() {
    const FaultSpec* fault = faults_.leaves_loop(report_.steps_completed);
    if (fault == nullptr) return false;
    left_loop_ = true;
    keeper_.note(RankEventKind::kLeftLoop, fault->message);
    return true;
  }

  void evaluate(bool through_ddp) {
    const NoGradGuard no_grad(graph_);
    if (through_ddp) {
      ddp_->forward(last_batch_, graph_);
    } else {
      ddp_model_->forward(last_batch_, graph_);
    }
  }

  /// A stall is time, not compute: a slow rank's is no longer than another's.
  void wait_for_loader(std::int64_t step) {
    const Seconds stall = imperfections_.loader_stall(step);
    if (stall > Seconds{0}) clock_.sleep(stall);
  }

  void describe_plan() {
    const ShardPlan plan =
        plan_shard(scenario_, inputs_->dataset->size(), group_.rank(), group_.size());
    const std::int64_t first = faults_.first_step();
    keeper_.update([&](RankReport& report) {
      report.dataset_samples = inputs_->dataset->size();
      report.samples_planned = plan.samples;
      report.steps_planned = plan.steps;
      report.steps_completed = first;
      report.first_step = first;
      for (const ParameterPtr& parameter : model_->parameters()) {
        is_meta_ = parameter->data.is_meta();
        ++report.parameter_tensors;
        report.parameter_count += parameter->data.numel();
        report.parameter_bytes += parameter->data.nbytes();
      }
      report.config_hash =
          hash_text(fmt::format("{} {} {} {}", inputs_->config_hash, sampler_options_.seed,
                                faults_.sets_epoch(scenario_.sampler.set_epoch), first))
              .hex();
    });
  }

  /// What DDP is about to be shown, for the ranks that are reported in detail; and the tensors that
  /// are summed up after a step: those that are trained, under the names that DDP knows.
  void describe_tensors() {
    std::vector<std::string> lines;
    for (const ParameterPtr& shown : ddp_model_->parameters()) {
      lines.push_back(describe_tensor("parameter", shown->name(), shown->data));
      const auto trained =
          std::find_if(model_->parameters().begin(), model_->parameters().end(),
                       [&](const ParameterPtr& p) { return p->name() == shown->name(); });
      tensors_.push_back(trained == model_->parameters().end() ? shown->data : (*trained)->data);
    }
    for (const BufferPtr& buffer : ddp_model_->buffers()) {
      lines.push_back(describe_tensor("buffer", buffer->name, buffer->data));
      tensors_.push_back(buffer->data);
    }
    if (report_.rank >= scenario_.output.detail_ranks) return;
    keeper_.update([&](RankReport& report) {
      report.tensors = std::move(lines);
      report.buffer_count = std::ssize(ddp_model_->buffers());
    });
  }

  /// Texts of some KB: kept for the ranks that are reported in detail.
  void keep_logging_data() {
    if (report_.rank >= scenario_.output.detail_ranks) return;
    keeper_.update([&](RankReport& report) { report.ddp_logging = ddp_->logging_data(); });
  }

  void describe_buckets() {
    keep_logging_data();
    keeper_.update([&](RankReport& report) {
      report.comm_hook = ddp_->comm_hook();
      report.rebuilt_buckets = ddp_->has_rebuilt_buckets();
      report.buckets.clear();
      for (BucketInfo& bucket : ddp_->buckets()) {
        report.buckets.push_back(
            {bucket.index, bucket.bytes, bucket.elements, std::move(bucket.parameters)});
      }
    });
  }

  /// One turn of the loop; false at the end of the epoch.
  bool step(std::int64_t epoch) {
    std::string reason;
    try {
      return train_step(epoch);
    } catch (const InterruptedStep& interrupted) {
      reason = interrupted.reason;
      clock_.forget_stamps();  // they would be written into a step that is gone
    }
    keeper_.note(RankEventKind::kSkipped, reason);
    keeper_.update([](RankReport& report) { ++report.steps_completed; });
    return true;
  }

  /// One optimizer step, over one batch or several (gradient accumulation); false at the end of the
  /// epoch.
  bool train_step(std::int64_t epoch) {
    StepRecord record;
    record.epoch = epoch;
    record.step = report_.steps_completed;
    keeper_.enter(Phase::kData);
    const std::int64_t batches = std::min(scenario_.train.accumulate_steps, loader_.batches_left());
    if (batches == 0) return false;
    clock_.stamp(record.begin);
    optimizer_->zero_grad();
    record.batches = batches;
    record.reductions = 0;
    record.loss_scale = faults_.loss_scale(record.step);
    slowed_clock_.set_factor(compute_factor(record.step));
    if (!faults_.empty()) {
      graph_.leave_out(faults_.unused_parameters(*model_, record.step));
    }

    // A device may still be busy with a step when all of it has been issued. So what the host wants
    // to know of it, times and losses, is asked for at the end, when there is nothing left to
    // issue.
    std::vector<BatchTimes> times(static_cast<std::size_t>(batches));
    std::vector<Tensor> losses;
    std::vector<std::int64_t> sample_indices;
    for (std::int64_t micro_step = 0; micro_step < batches; ++micro_step) {
      const FaultInjector::Position position{epoch, record.step, micro_step};
      BatchTimes& of_batch = times[static_cast<std::size_t>(micro_step)];
      clock_.stamp(of_batch.begin);
      keeper_.enter(Phase::kData);
      faults_.happen(FaultPoint::kData, position);
      if (micro_step == 0) wait_for_loader(record.step);
      Batch batch = *loader_.next();
      batch.global_step = record.step;
      keeper_.add_samples(epoch, batch.sample_indices);
      sample_indices.insert(sample_indices.end(), batch.sample_indices.begin(),
                            batch.sample_indices.end());
      clock_.stamp(of_batch.drawn);

      keeper_.enter(Phase::kForward);
      faults_.happen(FaultPoint::kForward, position);
      ddp_->set_position(epoch, record.step, micro_step);
      const bool local = scenario_.train.no_sync && micro_step + 1 < batches;
      std::optional<NoSyncGuard> no_sync;
      record.last_batch_reduced = !faults_.stays_local(position, local);
      if (record.last_batch_reduced) {
        ++record.reductions;
      } else {
        no_sync.emplace(*ddp_);
      }
      const std::vector<Variable> outputs = ddp_->forward(batch, graph_);
      clock_.stamp(of_batch.computed);
      if (ddp_->has_rebuilt_buckets() != report_.rebuilt_buckets) describe_buckets();

      // The reducer's hooks launch the buckets as the gradients arrive, and its callback at the end
      // of the pass waits for all of them: when backward returns every gradient is the mean over
      // the ranks.
      keeper_.enter(Phase::kBackward);
      faults_.happen(FaultPoint::kBackward, position);
      faults_.arm(position);
      backward(outputs.front(), record);
      losses.push_back(outputs.front().data);
      if (micro_step + 1 < batches &&
          faults_.find(FaultKind::kClipInsideAccumulation, record.step) != nullptr) {
        unscale(record);
        if (clips()) clip(record);
      }
      if (!faults_.empty()) last_batch_ = std::move(batch);
    }
    record.samples = std::ssize(sample_indices);
    record.sample_hash = hash_indices(sample_indices).hex();
    clock_.stamp(record.backward_end);
    keeper_.update([&](RankReport& report) { report.warnings = ddp_->warnings(); });

    keeper_.enter(Phase::kOptimizer);
    faults_.happen(FaultPoint::kOptimizer, {epoch, record.step, 0});
    std::vector<std::unique_ptr<HostRead>> losses_read;
    for (const Tensor& loss : losses) {
      if (!loss.is_meta()) losses_read.push_back(device_.read(loss));
    }
    const std::unique_ptr<HostRead> norm_read = update(record);
    // The step's only wait: what is read is there when the last stamp is.
    clock_.settle_stamps();
    for (const auto& loss : losses_read) add_loss(record, loss->value());
    if (clips() && !record.clip_norm) note_norm(record, norm_read ? norm_read->value() : 0);
    split_times(record, times);
    keeper_.update([](RankReport& report) { ++report.steps_completed; });

    keeper_.enter(Phase::kCheck);
    const auto hash = hash_after(record.step);
    if (hash) {
      record.parameter_hash = hash->hex();
      record.checksums = checksum(tensors_);
    }
    record.end = clock_.now();
    keeper_.add_step(record);
    if (hash && scenario_.train.check_hashes && hash_due(record.step)) {
      check_equal_hashes(group_, device_, *hash, epoch, record.step);
      keeper_.update([&](RankReport& report) { report.steps.back().end = clock_.now(); });
    }
    if (on_step_) on_step_(report_.steps.back());
    faults_.happen_after_step({epoch, record.step, 0});
    return true;
  }

  /// Stamps of one batch.
  struct BatchTimes {
    Seconds begin{0};
    Seconds drawn{0};
    Seconds computed{0};  ///< forward is done
  };

  /// From the stamps of all batches to one sequence of phases.
  void split_times(StepRecord& record, const std::vector<BatchTimes>& batches) const {
    Seconds data{0};
    Seconds forward{0};
    for (std::size_t i = 0; i < batches.size(); ++i) {
      data += batches[i].drawn - (i == 0 ? record.begin : batches[i].begin);
      forward += batches[i].computed - batches[i].drawn;
    }
    record.data_end = record.begin + data;
    record.forward_end = record.data_end + forward;
    record.backward_compute_end = record.backward_end;
    if (!record.last_batch_reduced) return;  // DDP had no iteration whose times these could be
    const IterationTimes& times = ddp_->last_iteration();
    record.backward_compute_end = times.backward_compute_end;
    record.comm_begin = times.backward_comm_start;
    record.comm_end = times.backward_comm_end;
  }

  bool clips() const { return scenario_.train.clip_grad_norm && !is_meta_; }
  double clip_limit(std::int64_t step) const {
    const FaultSpec* own_clip = faults_.find(FaultKind::kClip, step);
    return own_clip != nullptr ? own_clip->value : *scenario_.train.clip_grad_norm;
  }
  void note_norm(StepRecord& record, double norm) const {
    constexpr double kEpsilon = 1e-6;  // clip_grad_norm's
    record.grad_norm = norm;
    record.clip_coefficient = std::min(1.0, clip_limit(record.step) / (norm + kEpsilon));
  }

  void unscale(StepRecord& record) {
    if (record.loss_scale == 1) return;
    scale_gradients(1 / record.loss_scale);
    ++record.unscales;
  }

  /// Returns the norm, as it was, on its way to the host.
  std::unique_ptr<HostRead> clip(StepRecord& record) {
    if (record.unscales == 0) record.scale_at_clip = record.loss_scale;
    if (faults_.find(FaultKind::kNormReducedAgain, record.step) != nullptr) {
      clip_by_sum_over_ranks(record);
      return nullptr;
    }
    const Tensor norm = clip_grad_norm_on_device(model_->parameters(), clip_limit(record.step),
                                                 scenario_.train.clip_norm_type,
                                                 scenario_.train.error_if_nonfinite);
    return norm.defined() ? device_.read(norm) : nullptr;
  }

  /// The mistake of a clip that takes reduced gradients for shards of a gradient.
  void clip_by_sum_over_ranks(StepRecord& record) {
    const double norm =
        clip_grad_norm(model_->parameters(), std::numeric_limits<double>::infinity());
    const Tensor square = control_tensor<double>({norm * norm}, DType::kFloat64, device_);
    CollectiveOptions options;
    options.label.epoch = record.epoch;
    options.label.step = record.step;
    options.label.phase = Phase::kOptimizer;
    options.label.what = "squared gradient norm";
    group_.allreduce(square, ReduceOp::kSum, options)->wait();
    record.clip_norm = std::sqrt(control_values<double>(square).front());
    note_norm(record, *record.clip_norm);
    record.grad_norm = norm;
    scale_gradients(*record.clip_coefficient);
  }

  /// Clipping and the update. Where the model is replayed they take what its profile says, or what
  /// they really take if that is more. Returns the norm that was clipped, on its way to the host;
  /// null where there is none.
  std::unique_ptr<HostRead> update(StepRecord& record) {
    const Seconds begin = clock_.now();
    const Seconds replayed = model_->replayed_optimizer_time();
    const bool computed = scenario_.model.kind == ModelSpec::Kind::kTransformer;
    const auto elements = static_cast<double>(report_.parameter_count);
    const bool unscales_late = faults_.find(FaultKind::kClipBeforeUnscale, record.step) != nullptr;
    if (!unscales_late) unscale(record);
    std::unique_ptr<HostRead> norm_read;
    if (clips()) {
      norm_read = clip(record);
      if (computed) clock_.charge_flops(kClipFlops * elements);
    }
    if (unscales_late) unscale(record);
    clock_.stamp(record.clip_end);
    const FaultSpec* own_rate = faults_.find(FaultKind::kLearningRate, record.step);
    for (std::size_t group = 0; group < base_rates_.size(); ++group) {
      const double base = own_rate != nullptr ? own_rate->value : base_rates_[group];
      optimizer_->set_learning_rate(scheduled_lr(lr_schedule_, base, record.step), group);
    }
    record.learning_rate = optimizer_->learning_rate();
    // On meta tensors there is nothing to update, and the optimizer's state would be nothing but
    // shapes: 150 MB of them for a thousand ranks of BERT.
    if (!is_meta_) optimizer_->step();
    if (computed) {
      const bool adamw = scenario_.optimizer.kind == OptimizerSpec::Kind::kAdamW;
      clock_.charge_flops((adamw ? kAdamWFlops : kSgdFlops) * elements);
    } else {
      const Seconds spent = clock_.is_behind_host() ? Seconds{0} : clock_.now() - begin;
      if (spent < replayed) clock_.advance(replayed - spent);
    }
    clock_.stamp(record.optimizer_end);
    return norm_read;
  }

  /// The step's loss is the mean over its batches, and so its gradient is.
  void backward(const Variable& loss, const StepRecord& record) {
    const bool is_nan = faults_.find(FaultKind::kNan, record.step) != nullptr;
    if (record.batches == 1 && record.loss_scale == 1 && !is_nan) {
      graph_.backward(loss);
      return;
    }
    const double scale = record.loss_scale / static_cast<double>(record.batches);
    Tensor share = loss.data.empty_like();
    share.device().fill(share, is_nan ? std::numeric_limits<double>::quiet_NaN() : scale);
    graph_.backward({loss}, {std::move(share)});
  }

  void add_loss(StepRecord& record, double value) const {
    if (faults_.find(FaultKind::kNan, record.step) != nullptr) {
      value = std::numeric_limits<double>::quiet_NaN();
    }
    record.loss = record.loss.value_or(0) + value / static_cast<double>(record.batches);
  }

  void scale_gradients(double factor) {
    for (const ParameterPtr& parameter : model_->parameters()) {
      Tensor& grad = parameter->grad;
      if (grad.defined()) grad.device().scale(grad, grad, factor);
    }
  }

  bool hash_due(std::int64_t step) const {
    const std::int64_t every = scenario_.train.hash_every;
    return every > 0 && (step + 1) % every == 0;
  }

  std::optional<Hash128> hash_after(std::int64_t step) const {
    const bool last = step + 1 == report_.steps_planned;
    if (!hash_due(step) && !last) return std::nullopt;
    return hash_parameters(model_->parameters());
  }

  const Scenario& scenario_;
  ProcessGroup& group_;
  FaultInjector faults_;
  RankImperfections imperfections_;
  SlowedClock slowed_clock_;
  Clock& clock_;
  Device& device_;
  const std::function<void(const StepRecord&)>& on_step_;
  RankReport& report_;
  ReportKeeper& keeper_;
  std::shared_ptr<const RunInputs> inputs_;
  const SamplerOptions sampler_options_;
  DataLoader loader_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Model> ddp_model_;  // the model as DDP is shown it
  Graph graph_;
  std::optional<DistributedDataParallel> ddp_;
  std::unique_ptr<Optimizer> optimizer_;
  LrSchedule lr_schedule_;
  std::vector<double> base_rates_;  // by parameter group, before the schedule
  bool is_meta_ = false;
  bool left_loop_ = false;
  Batch last_batch_;             // for an evaluation
  std::vector<Tensor> tensors_;  // trained, and buffers
};

/// Waits until every rank is done. What happens to the others meanwhile does not undo what this
/// rank has finished, but the diagnosis wants to know.
void shut_down(ProcessGroup& group, ReportKeeper& keeper) {
  keeper.enter(Phase::kShutdown);
  try {
    group.shutdown();
  } catch (const Error& error) {
    const bool of_others = error.code() == ErrorCode::kPeerFailed ||
                           error.code() == ErrorCode::kTimeout ||
                           error.code() == ErrorCode::kRankDied;
    if (!of_others) throw;
    keeper.error(error.code(), error.what());
  }
}

/// Parts of the engine that know no rank leave it to us: "rank 1, step 2 backward: ...".
std::string with_rank(const std::string& what, const RankReport& report) {
  const std::string rank = fmt::format("rank {}", report.rank);
  if (what.find(rank) != std::string::npos) return what;
  // What comes after the update comes when the step is counted already.
  const bool in_step = report.phase == Phase::kData || report.phase == Phase::kForward ||
                       report.phase == Phase::kBackward || report.phase == Phase::kOptimizer;
  const std::string step = in_step ? fmt::format("step {} ", report.steps_completed) : "";
  return fmt::format("{}, {}{}: {}", rank, step, to_string(report.phase), what);
}

}  // namespace

void run_rank(const Scenario& scenario, const RankWorld& world, RankReport& report) {
  report.rank = world.process_group->rank();
  report.world_size = world.process_group->size();
  world.process_group->set_detail(scenario.detail);
  ReportKeeper keeper(report, *world.clock, world.process_group->flight_recorder(),
                      world.report_mutex, report.rank < scenario.output.detail_ranks);
  keeper.enter(Phase::kInit);
  std::exception_ptr failure;
  try {
    {
      Training training(scenario, world, report, keeper);
      training.run();
    }
    keeper.finished();
    shut_down(*world.process_group, keeper);
    return;
  } catch (const CommError& error) {
    keeper.update([&](RankReport& r) { r.failed_collective = error.record(); });
    keeper.failed(error.code(), error.what());
    failure = std::current_exception();
  } catch (const Error& error) {
    const std::string what = with_rank(error.what(), report);
    keeper.failed(error.code(), what);
    world.clock->sleep(kTellOthersAfter);
    failure = what == error.what() ? std::current_exception()
                                   : std::make_exception_ptr(Error(error.code(), what));
  } catch (const std::exception& error) {
    const std::string what = with_rank(error.what(), report);
    keeper.failed(ErrorCode::kInternal, what);
    world.clock->sleep(kTellOthersAfter);
    failure = std::make_exception_ptr(Error(ErrorCode::kInternal, what));
  }
  // Outside the handlers: in the simulator other ranks run while this one waits.
  keeper.cleans_up();
  if (world.before_clean_up) world.before_clean_up();
  clean_up(scenario.faults, report.rank, *world.clock, world.block);
  std::rethrow_exception(failure);
}

}  // namespace gradsync
