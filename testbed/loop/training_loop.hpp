#pragma once

#include <cstdint>

#include "gradsync/data/data_loader.hpp"
#include "gradsync/ddp/distributed_data_parallel.hpp"
#include "gradsync/ddp/join.hpp"
#include "gradsync/models/model.hpp"
#include "gradsync/optim/optimizer.hpp"
#include "gradsync/testbed/loop/gradient_clipper.hpp"
#include "gradsync/testbed/loop/gradient_scaler.hpp"
#include "gradsync/testbed/loop/learning_rates.hpp"
#include "gradsync/testbed/loop/loop_observer.hpp"
#include "gradsync/testbed/loop/loop_policy.hpp"

namespace gradsync {

/// The parts of a loop. All of them must outlive the loop.
struct LoopParts {
  DataLoader& loader;
  Model& model;  ///< the model whose parameters `ddp` manages
  DistributedDataParallel& ddp;
  Graph& graph;
  GradientScaler& scaler;
  GradientClipper& clipper;
  LearningRates& learning_rates;
  Optimizer& optimizer;
  const LoopPolicy& policy;
  LoopObserver& observer;
};

struct LoopOptions {
  std::int64_t epochs = 1;
  std::int64_t steps = 0;             ///< total optimizer steps over all epochs
  std::int64_t first_step = 0;        ///< earlier steps come from a checkpoint
  std::int64_t accumulate_steps = 1;  ///< batches per optimizer step
  bool no_sync = true;                ///< reduce only with the last batch of a step
  bool set_epoch = true;              ///< reshuffle in each epoch
  JoinOptions join = {.enable = false};
};

/// The training loop of one rank, as in a PyTorch program. It neither records nor injects faults:
/// its observer and the subclasses of its parts do.
class TrainingLoop {
 public:
  TrainingLoop(const LoopParts& parts, const LoopOptions& options)
      : parts_(parts), options_(options), step_(options.first_step) {}

  /// Runs all epochs. Throws the errors of the parts; handles SkippedStep.
  void run();

 private:
  bool take_step(std::int64_t epoch);
  bool train_step(const LoopPosition& begin);

  LoopParts parts_;
  LoopOptions options_;
  std::int64_t step_;
  bool left_ = false;
};

}  // namespace gradsync
