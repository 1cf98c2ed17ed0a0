#include "engine/train/rank_main.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "engine/comm/comm_error.hpp"
#include "engine/ddp/distributed_data_parallel.hpp"
#include "engine/optim/clip_grad_norm.hpp"
#include "engine/train/collective_collector.hpp"
#include "engine/train/hash_check.hpp"
#include "engine/train/parameter_hash.hpp"
#include "engine/train/shard_plan.hpp"

namespace gradsync {
namespace {

/// Floating-point operations an element, for the simulated clock: squaring, adding and scaling in
/// the clip, and the arithmetic of an update as torch/optim/adamw.py and sgd.py write it.
constexpr double kClipFlops = 3;
constexpr double kAdamWFlops = 14;
constexpr double kSgdFlops = 6;

/// Keeps the report true while the rank runs, and completes it when the rank is left, be it by an
/// exception of the simulator that ends a blocked actor.
class ReportKeeper {
 public:
  ReportKeeper(RankReport& report, const RankWorld& world, const Scenario& scenario)
      : report_(report), clock_(*world.clock), recorder_(world.process_group->flight_recorder()) {
    report_.rank = world.process_group->rank();
    report_.world_size = world.process_group->size();
    if (report_.rank < scenario.output.detail_ranks) collector_.emplace(recorder_);
    enter(Phase::kInit);
  }
  ~ReportKeeper() {
    if (report_.state == RankState::kRunning) report_.ended = clock_.now();
    try {
      report_.flight = recorder_.snapshot();
      if (collector_) report_.collectives = collector_->records();
    } catch (const std::bad_alloc&) {
      // Out of memory while a rank is ending: the rest of the report is worth more than nothing.
    }
  }
  ReportKeeper(const ReportKeeper&) = delete;
  ReportKeeper& operator=(const ReportKeeper&) = delete;

  void enter(Phase phase) {
    report_.phase = phase;
    report_.phase_since = clock_.now();
  }

  void finished() {
    report_.state = RankState::kFinished;
    report_.ended = clock_.now();
  }

  void failed(ErrorCode code, const std::string& what) {
    report_.state = RankState::kFailed;
    report_.ended = clock_.now();
    error(code, what);
  }

  void error(ErrorCode code, const std::string& what) {
    report_.error_code = code;
    report_.error = what;
  }

 private:
  RankReport& report_;
  Clock& clock_;
  FlightRecorder& recorder_;
  std::optional<CollectiveCollector> collector_;
};

/// The training loop of one rank.
class Training {
 public:
  Training(const Scenario& scenario, const RankWorld& world, RankReport& report,
           ReportKeeper& keeper)
      : scenario_(scenario),
        group_(*world.process_group),
        clock_(*world.clock),
        device_(*world.device),
        on_step_(world.on_step),
        report_(report),
        keeper_(keeper),
        inputs_(world.inputs ? world.inputs : load_inputs(scenario)),
        loader_(*inputs_->dataset,
                DistributedSampler(inputs_->dataset->size(), group_.size(), group_.rank(),
                                   sampler_options(scenario.sampler)),
                scenario.train.batch_size, device_),
        model_(make_model(scenario, *inputs_, group_.rank(), group_.size(), device_)),
        graph_(clock_) {
    describe_plan();
    ddp_.emplace(*model_, group_, ddp_options(scenario.ddp));
    register_comm_hook(*ddp_, scenario.ddp);
    optimizer_ = make_optimizer(scenario.optimizer, model_->parameters());
    lr_schedule_ = lr_schedule(scenario.optimizer.lr_schedule);
    describe_buckets();
  }

  void run() {
    for (std::int64_t epoch = 0; epoch < scenario_.train.epochs; ++epoch) {
      loader_.start_epoch(scenario_.sampler.set_epoch ? epoch : 0);
      Join join(*ddp_, join_options(scenario_.ddp.join));
      while (report_.steps_completed < report_.steps_planned) {
        if (!step(epoch)) break;
      }
      if (scenario_.ddp.join.enable) keeper_.enter(Phase::kJoin);
      join.finish();
    }
    keep_logging_data();
    if (const auto hash = hash_parameters(model_->parameters())) {
      report_.final_parameter_hash = hash->hex();
    }
  }

 private:
  void describe_plan() {
    const ShardPlan plan =
        plan_shard(scenario_, inputs_->dataset->size(), group_.rank(), group_.size());
    report_.dataset_samples = inputs_->dataset->size();
    report_.samples_planned = plan.samples;
    report_.steps_planned = plan.steps;
    for (const ParameterPtr& parameter : model_->parameters()) {
      is_meta_ = parameter->data.is_meta();
      ++report_.parameter_tensors;
      report_.parameter_count += parameter->data.numel();
      report_.parameter_bytes += parameter->data.nbytes();
    }
  }

  /// Texts of some KB: kept for the ranks that are reported in detail.
  void keep_logging_data() {
    if (report_.rank < scenario_.output.detail_ranks) {
      report_.ddp_logging = ddp_->logging_data();
    }
  }

  void describe_buckets() {
    keep_logging_data();
    report_.comm_hook = ddp_->comm_hook();
    report_.rebuilt_buckets = ddp_->has_rebuilt_buckets();
    report_.buckets.clear();
    for (BucketInfo& bucket : ddp_->buckets()) {
      report_.buckets.push_back(
          {bucket.index, bucket.bytes, bucket.elements, std::move(bucket.parameters)});
    }
  }

  /// One optimizer step, over one batch or several (gradient accumulation); false at the end of the
  /// epoch.
  bool step(std::int64_t epoch) {
    StepRecord record;
    record.epoch = epoch;
    record.step = report_.steps_completed;
    record.begin = clock_.now();
    keeper_.enter(Phase::kData);
    const std::int64_t batches = std::min(scenario_.train.accumulate_steps, loader_.batches_left());
    if (batches == 0) return false;
    optimizer_->zero_grad();

    Seconds data{0};
    Seconds forward{0};
    std::vector<std::int64_t> sample_indices;
    for (std::int64_t micro_step = 0; micro_step < batches; ++micro_step) {
      const Seconds begin = clock_.now();
      keeper_.enter(Phase::kData);
      Batch batch = *loader_.next();
      batch.global_step = record.step;
      sample_indices.insert(sample_indices.end(), batch.sample_indices.begin(),
                            batch.sample_indices.end());
      const Seconds drawn = clock_.now();

      keeper_.enter(Phase::kForward);
      ddp_->set_position(epoch, record.step, micro_step);
      std::optional<NoSyncGuard> no_sync;
      if (scenario_.train.no_sync && micro_step + 1 < batches) no_sync.emplace(*ddp_);
      const std::vector<Variable> outputs = ddp_->forward(batch, graph_);
      const Seconds computed = clock_.now();
      if (ddp_->has_rebuilt_buckets() != report_.rebuilt_buckets) describe_buckets();
      data += (micro_step == 0 ? drawn - record.begin : drawn - begin);
      forward += computed - drawn;

      // The reducer's hooks launch the buckets as the gradients arrive, and its callback at the end
      // of the pass waits for all of them: when backward returns every gradient is the mean over
      // the ranks.
      keeper_.enter(Phase::kBackward);
      backward(outputs.front(), batches);
      add_loss(record, outputs.front().data, batches);
    }
    record.samples = std::ssize(sample_indices);
    record.sample_hash = hash_indices(sample_indices).hex();
    record.data_end = record.begin + data;
    record.forward_end = record.data_end + forward;
    record.backward_end = clock_.now();
    const IterationTimes& times = ddp_->last_iteration();
    record.backward_compute_end = times.backward_compute_end;
    record.comm_begin = times.backward_comm_start;
    record.comm_end = times.backward_comm_end;

    report_.warnings = ddp_->warnings();

    keeper_.enter(Phase::kOptimizer);
    update(record);
    ++report_.steps_completed;

    keeper_.enter(Phase::kCheck);
    const auto hash = hash_after(record.step);
    if (hash) record.parameter_hash = hash->hex();
    record.end = clock_.now();
    report_.steps.push_back(record);
    if (hash && scenario_.train.check_hashes && hash_due(record.step)) {
      check_equal_hashes(group_, device_, *hash, epoch, record.step);
      report_.steps.back().end = clock_.now();
    }
    if (on_step_) on_step_(report_.steps.back());
    return true;
  }

  /// Clipping and the update. Where the model is replayed they take what its profile says, or what
  /// they really take if that is more.
  void update(StepRecord& record) {
    const Seconds begin = clock_.now();
    const std::vector<ParameterPtr>& parameters = model_->parameters();
    const Seconds replayed = model_->replayed_optimizer_time();
    const bool computed = scenario_.model.kind == ModelSpec::Kind::kTransformer;
    const auto elements = static_cast<double>(report_.parameter_count);
    if (scenario_.train.clip_grad_norm && !is_meta_) {
      record.grad_norm =
          clip_grad_norm(parameters, *scenario_.train.clip_grad_norm,
                         scenario_.train.clip_norm_type, scenario_.train.error_if_nonfinite);
      if (computed) clock_.charge_flops(kClipFlops * elements);
    }
    record.clip_end = clock_.now();
    optimizer_->set_learning_rate(
        scheduled_lr(lr_schedule_, scenario_.optimizer.lr, report_.steps_completed));
    record.learning_rate = optimizer_->learning_rate();
    // On meta tensors there is nothing to update, and the optimizer's state would be nothing but
    // shapes: 150 MB of them for a thousand ranks of BERT.
    if (!is_meta_) optimizer_->step();
    if (computed) {
      const bool adamw = scenario_.optimizer.kind == OptimizerSpec::Kind::kAdamW;
      clock_.charge_flops((adamw ? kAdamWFlops : kSgdFlops) * elements);
    } else if (const Seconds spent = clock_.now() - begin; spent < replayed) {
      clock_.advance(replayed - spent);
    }
    record.optimizer_end = clock_.now();
  }

  /// The step's loss is the mean over its batches, and so its gradient is.
  void backward(const Variable& loss, std::int64_t batches) {
    if (batches == 1) {
      graph_.backward(loss);
      return;
    }
    Tensor share = loss.data.empty_like();
    share.device().fill(share, 1.0 / static_cast<double>(batches));
    graph_.backward({loss}, {std::move(share)});
  }

  static void add_loss(StepRecord& record, const Tensor& loss, std::int64_t batches) {
    if (loss.is_meta()) return;
    const Tensor host = Tensor::empty({}, loss.dtype(), cpu_device());
    loss.device().copy_to_host({host.data(), static_cast<std::size_t>(host.nbytes())}, loss);
    Tensor wide = Tensor::empty({}, DType::kFloat64, cpu_device());
    cpu_device().cast(wide, host);
    record.loss = record.loss.value_or(0) + wide.span<double>()[0] / static_cast<double>(batches);
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
  Clock& clock_;
  Device& device_;
  const std::function<void(const StepRecord&)>& on_step_;
  RankReport& report_;
  ReportKeeper& keeper_;
  std::shared_ptr<const RunInputs> inputs_;
  DataLoader loader_;
  std::unique_ptr<Model> model_;
  Graph graph_;
  std::optional<DistributedDataParallel> ddp_;
  std::unique_ptr<Optimizer> optimizer_;
  LrSchedule lr_schedule_;
  bool is_meta_ = false;
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

}  // namespace

void run_rank(const Scenario& scenario, const RankWorld& world, RankReport& report) {
  ReportKeeper keeper(report, world, scenario);
  try {
    {
      Training training(scenario, world, report, keeper);
      training.run();
    }
    keeper.finished();
    shut_down(*world.process_group, keeper);
  } catch (const CommError& error) {
    report.failed_collective = error.record();
    keeper.failed(error.code(), error.what());
    throw;
  } catch (const Error& error) {
    keeper.failed(error.code(), error.what());
    throw;
  } catch (const std::exception& error) {
    const std::string what = fmt::format("rank {}: {}", report.rank, error.what());
    keeper.failed(ErrorCode::kInternal, what);
    throw Error(ErrorCode::kInternal, what);
  }
}

}  // namespace gradsync
