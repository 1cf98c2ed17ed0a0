#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "gradsync/comm/process_group.hpp"
#include "gradsync/data/distributed_sampler.hpp"
#include "gradsync/ddp/distributed_data_parallel.hpp"
#include "gradsync/models/model.hpp"
#include "gradsync/optim/optimizer.hpp"
#include "tests/torch/recorded_parameters.hpp"
#include "tests/torch/result_writer.hpp"

namespace gradsync::torch_tests {

/// The training loop of a case on one rank, with everything noted that is compared: gradsync's side
/// of tests/torch/torch_runner.py.
class Training {
 public:
  /// `recorded`, if not null, gives the parameters at the start of each step.
  Training(const nlohmann::json& case_, ProcessGroup& group, ResultWriter& writer,
           const RecordedParameters* recorded);
  ~Training();

  /// The fields of the result. An error that PyTorch has as well (a misuse, an early termination)
  /// is one of them.
  nlohmann::json run();

 private:
  void train();
  void run_steps(std::int64_t count);
  void step();
  std::vector<std::int64_t> next_samples();
  nlohmann::json collectives() const;
  nlohmann::json logging_data() const;

  const nlohmann::json& case_;
  ProcessGroup& group_;
  ResultWriter& writer_;
  const RecordedParameters* recorded_;
  DType dtype_;
  Graph graph_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<DistributedDataParallel> ddp_;
  std::unique_ptr<Optimizer> optimizer_;
  DistributedSampler sampler_;
  std::vector<std::vector<std::int64_t>> orders_;  // the sampler's, by epoch
  std::size_t next_sample_ = 0;                    // in the last of them
  std::vector<double> norms_;
  std::vector<double> losses_;
  std::int64_t steps_ = 0;
};

}  // namespace gradsync::torch_tests
