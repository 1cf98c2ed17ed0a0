#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gradsync/comm/process_group.hpp"
#include "gradsync/core/error.hpp"
#include "gradsync/data/distributed_sampler.hpp"
#include "gradsync/models/model.hpp"
#include "gradsync/testbed/scenario/fault_spec.hpp"

namespace gradsync {

/// Ends the step under way: its loop goes on with the next batch, as `continue` does.
struct InterruptedStep {
  std::string reason;
};

/// How a process ends without a word: by `signal`, or with `exit_code` where that is 0. In the
/// simulator it is thrown through the rank, which has no process of its own; it is no
/// std::exception, so nothing that handles errors takes it for one.
struct ProcessEnd {
  int exit_code = 0;
  int signal = 0;
};

/// The faults of one rank, and the places at which its training loop lets them happen. Without
/// faults every call is a look into an empty list.
///
/// Belongs to one rank, like what it is made of.
class FaultInjector {
 public:
  /// What the rank lends.
  struct Rank {
    ProcessGroup* group = nullptr;
    Clock* clock = nullptr;
    Device* device = nullptr;
    /// The rank is in another phase now.
    std::function<void(Phase)> enter = [](Phase) {};
    /// The program's handler has an exception in its hands.
    std::function<void(const std::string& what)> raised = [](const std::string&) {};
    /// A forward pass without gradients.
    std::function<void(bool through_ddp)> evaluate = [](bool) {};
    /// Ends the rank's process; does not return.
    std::function<void(const ProcessEnd&)> end_process;
  };
  /// Where the loop is.
  struct Position {
    std::int64_t epoch = -1;
    std::int64_t step = -1;
    std::int64_t micro_step = 0;
  };

  /// Keeps the faults that concern `rank.group`'s rank.
  FaultInjector(const std::vector<FaultSpec>& faults, Rank rank);

  bool empty() const noexcept { return faults_.empty(); }

  /// Lets everything happen that belongs to this point of the loop, in the order of the scenario.
  /// Throws InterruptedStep, an Error(kInternal), or what a collective throws; may not return.
  void happen(FaultPoint point, const Position& position);
  /// After a step: evaluation, checkpoint and the program's own collectives.
  void happen_after_step(const Position& position);

  /// Whether the loop is to be left before this step; the reason is for the log.
  const FaultSpec* leaves_loop(std::int64_t step) const;
  /// The first fault of this kind that is there in `step`; null if none is.
  const FaultSpec* find(FaultKind kind, std::int64_t step = 0) const;

  /// What a rank's configuration is with its faults.
  SamplerOptions sampler_options(SamplerOptions options) const;
  int sampler_rank(int rank) const;
  bool sets_epoch(bool set_epoch) const;
  std::int64_t first_step() const;
  /// Whether the gradients of this micro step stay local.
  bool stays_local(const Position& position, bool local) const;
  double loss_scale(std::int64_t step) const;

  /// The model as DDP is shown it; `model` itself where nothing is different.
  std::unique_ptr<Model> model_for_ddp(Model& model) const;
  /// Parameters that this step does not use.
  std::vector<const Parameter*> unused_parameters(const Model& model, std::int64_t step) const;
  /// After DDP has hung its hooks on the parameters.
  void watch_gradients(const Model& model);
  /// The parameters whose hooks fire twice in the backward pass that follows.
  void arm(const Position& position);

 private:
  void happen(const FaultSpec& fault, const Position& position, Phase phase);
  void communicate(const FaultSpec& fault, const Position& position, Phase phase);
  void make_group(const FaultSpec& fault);
  ProcessGroup& group_of(const FaultSpec& fault) const;
  Error error_of(const FaultSpec& fault, const Position& position, Phase phase) const;

  std::vector<FaultSpec> faults_;
  Rank rank_;
  std::map<std::string, std::shared_ptr<ProcessGroup>> groups_;
  std::vector<WorkPtr> in_flight_;                   // collectives that the step did not wait for
  std::shared_ptr<std::vector<std::string>> armed_;  // shared with the hooks on parameters
};

}  // namespace gradsync
