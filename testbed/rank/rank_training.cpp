#include "gradsync/testbed/rank/rank_training.hpp"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "gradsync/autograd/parameter_hash.hpp"
#include "gradsync/testbed/faults/fault_observer.hpp"
#include "gradsync/testbed/faults/faulted_model.hpp"
#include "gradsync/testbed/faults/slow_host.hpp"
#include "gradsync/testbed/loop/training_loop.hpp"
#include "gradsync/testbed/rank/device_check.hpp"
#include "gradsync/testbed/rank/hash_check.hpp"
#include "gradsync/testbed/rank/optimizer_time.hpp"
#include "gradsync/testbed/record/rank_description.hpp"
#include "gradsync/testbed/record/step_recorder.hpp"

namespace gradsync {
namespace {

/// Passes each step's record to the progress callback.
class StepReporter final : public LoopObserver {
 public:
  StepReporter(const ReportKeeper& keeper, const std::function<void(const StepRecord&)>& on_step)
      : keeper_(&keeper), on_step_(&on_step) {}

  void after_optimizer(const LoopPosition&) override {
    if (*on_step_) (*on_step_)(keeper_->report().steps.back());
  }

 private:
  const ReportKeeper* keeper_;
  const std::function<void(const StepRecord&)>* on_step_;
};

/// The members are constructed in the order in which a program constructs them. Members that
/// communicate, or at which a fault happens, come at a point that all ranks reach.
class RankTraining {
 public:
  RankTraining(const Scenario& scenario, const RankRuntime& runtime, ReportKeeper& keeper)
      : scenario_(scenario),
        group_(*runtime.process_group),
        device_(*runtime.device),
        keeper_(keeper),
        faults_(scenario.faults, group_.rank()),
        events_(faults_, lend(runtime)),
        host_(*runtime.clock, faults_, scenario.imperfections, group_.rank()),
        inputs_(runtime.inputs ? runtime.inputs : load_inputs(scenario)),
        sampler_(faults_.sampler(scenario.sampler)),
        loader_(*inputs_->dataset,
                DistributedSampler(inputs_->dataset->size(), group_.size(),
                                   faults_.sampler_rank(group_.rank()), sampler_),
                scenario.train.batch_size, device_),
        model_(make_model(scenario, *inputs_, group_.rank(), group_.size(), device_)),
        graph_(host_.clock()),
        scaler_(faults_, model_->parameters()),
        clipper_(faults_, group_, device_, model_->parameters(), clip_options()),
        ddp_model_(model_for_ddp()),
        tensors_(describe_tensors(keeper, *model_, ddp_model_)),
        ddp_(ddp_model_, group_, scenario.ddp, CallSite::none()),
        fault_observer_({faults_, events_, *model_, ddp_model_, graph_, ddp_, scaler_, clipper_}),
        optimizer_(make_optimizer(scenario.optimizer, model_->parameters())),
        learning_rates_(faults_, *optimizer_, scenario.optimizer.lr_schedule),
        policy_(faults_),
        recorder_({scenario, keeper, host_.clock(), *model_, ddp_, *optimizer_, scaler_, tensors_}),
        hash_check_(scenario.train, group_, device_, host_.clock(), recorder_, keeper),
        reporter_(keeper, runtime.on_step),
        optimizer_time_(host_.clock(), optimizer_cost()) {
    register_comm_hook(ddp_, scenario.ddp);
    describe_buckets(keeper, ddp_);
    for (LoopObserver* observer : std::initializer_list<LoopObserver*>{
             &reporter_, &hash_check_, &recorder_, &fault_observer_, &host_, &optimizer_time_}) {
      observers_.add(*observer);
    }
  }

  void run() {
    const LoopParts parts{loader_,  ddp_model_,      ddp_,        graph_,  scaler_,
                          clipper_, learning_rates_, *optimizer_, policy_, observers_};
    const TrainSpec& train = scenario_.train;
    LoopOptions options;
    options.epochs = train.epochs;
    options.steps = keeper_.report().steps_planned;
    options.first_step = faults_.first_step();
    options.accumulate_steps = train.accumulate_steps;
    options.no_sync = train.no_sync;
    options.set_epoch = sampler_.set_epoch;
    options.join = scenario_.ddp.join;
    TrainingLoop(parts, options).run();
  }

 private:
  /// The access that the fault events need to this rank.
  FaultEvents::Rank lend(const RankRuntime& runtime) {
    FaultEvents::Rank rank;
    rank.group = runtime.process_group;
    rank.clock = runtime.clock;
    rank.device = runtime.device;
    rank.enter = [this](Phase phase) { keeper_.enter(phase); };
    rank.raised = [this](const std::string& what) { keeper_.note(RankEventKind::kRaised, what); };
    rank.evaluate = [this](bool through_ddp) { fault_observer_.evaluate(through_ddp); };
    rank.end_process = runtime.end_process;
    return rank;
  }

  /// Meta tensors cannot be clipped.
  GradientClipper::Options clip_options() const {
    const TrainSpec& train = scenario_.train;
    GradientClipper::Options options;
    if (!model_->parameters().back()->data.is_meta()) options.max_norm = train.clip_grad_norm;
    options.norm_type = train.clip_norm_type;
    options.error_if_nonfinite = train.error_if_nonfinite;
    return options;
  }

  FaultedModel model_for_ddp() {
    describe_shard();
    claim_device();
    events_.happen(FaultPoint::kInit, {});
    return {*model_, faults_, device_};
  }

  void describe_shard() {
    const std::int64_t samples = inputs_->dataset->size();
    RankPlan plan;
    plan.dataset_samples = samples;
    plan.shard = plan_shard(scenario_, samples, group_.rank(), group_.size());
    plan.first_step = faults_.first_step();
    plan.config_hash = hash_text(fmt::format("{} {} {} {}", inputs_->config_hash, sampler_.seed,
                                             sampler_.set_epoch, plan.first_step))
                           .hex();
    describe_plan(keeper_, plan, *model_);
  }

  /// Collective over all ranks, if the scenario assigns a wrong device to some rank.
  void claim_device() {
    const auto is_claim = [](const FaultSpec& fault) { return fault.as<DeviceFault>() != nullptr; };
    if (std::none_of(scenario_.faults.begin(), scenario_.faults.end(), is_claim)) return;
    const auto* fault = faults_.find<DeviceFault>();
    const std::int64_t claimed = fault != nullptr ? fault->device : group_.rank();
    keeper_.update([&](RankReport& report) { report.device_claimed = claimed; });
    check_devices(group_, device_, claimed);
  }

  OptimizerTime::Cost optimizer_cost() const {
    const auto elements = static_cast<double>(keeper_.report().parameter_count);
    const bool adamw = std::holds_alternative<AdamWOptions>(scenario_.optimizer.options);
    OptimizerTime::Cost cost;
    cost.replayed = scenario_.model.kind == ModelSpec::Kind::kReplay;
    cost.replayed_time = model_->replayed_optimizer_time();
    cost.clip_flops = OptimizerTime::kClipFlops * elements;
    cost.update_flops = (adamw ? OptimizerTime::kAdamWFlops : OptimizerTime::kSgdFlops) * elements;
    return cost;
  }

  const Scenario& scenario_;
  ProcessGroup& group_;
  Device& device_;
  ReportKeeper& keeper_;
  RankFaults faults_;
  FaultEvents events_;
  SlowHost host_;
  std::shared_ptr<const RunInputs> inputs_;
  SamplerSpec sampler_;
  DataLoader loader_;
  std::unique_ptr<Model> model_;
  Graph graph_;
  FaultedScaler scaler_;
  FaultedClipper clipper_;
  FaultedModel ddp_model_;  // the model as DDP sees it
  std::vector<Tensor> tensors_;
  DistributedDataParallel ddp_;
  FaultObserver fault_observer_;
  std::unique_ptr<Optimizer> optimizer_;
  FaultedRates learning_rates_;
  FaultedPolicy policy_;
  StepRecorder recorder_;
  HashCheck hash_check_;
  StepReporter reporter_;
  OptimizerTime optimizer_time_;
  LoopObservers observers_;
};

}  // namespace

void train_rank(const Scenario& scenario, const RankRuntime& runtime, ReportKeeper& keeper) {
  // On the heap, because the stack of a simulated rank is small.
  std::make_unique<RankTraining>(scenario, runtime, keeper)->run();
}

}  // namespace gradsync
