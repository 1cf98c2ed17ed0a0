// Times training steps of the handbook's model with the engine on Gloo, one process per rank:
// gradsync's side of bench/torch_step.py.
//
// RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=p torch_step [--no-ddp]
//
// Rank 0 prints {"step_seconds": [...]}: the time of every step after the warm-up on the slowest
// rank.
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "gradsync/backends/gloo/gloo_process_group.hpp"
#include "gradsync/backends/store/rank_environment.hpp"
#include "gradsync/backends/store/rendezvous.hpp"
#include "gradsync/core/wall_clock.hpp"
#include "gradsync/data/data_loader.hpp"
#include "gradsync/ddp/distributed_data_parallel.hpp"
#include "gradsync/models/transformer.hpp"
#include "gradsync/optim/adamw.hpp"
#include "gradsync/optim/clip_grad_norm.hpp"

namespace {

using namespace gradsync;

struct Arguments {
  int steps = 60;
  int warmup = 10;
  bool no_ddp = false;
};

std::vector<double> time_steps(const Arguments& arguments, ProcessGroup& group, Clock& clock) {
  constexpr std::int64_t kSamples = 1024, kSeqLen = 32, kVocabulary = 1000, kBatch = 32;
  TransformerModel model({}, /* seed = */ 0, cpu_device());
  std::optional<DistributedDataParallel> ddp;
  if (!arguments.no_ddp) ddp.emplace(model, group);
  AdamW optimizer(model.parameters());
  const auto dataset = make_synthetic_tokens(kSamples, kSeqLen, kVocabulary, /* seed = */ 0);
  SamplerOptions sampling;
  sampling.seed = 42;
  DataLoader loader(*dataset, DistributedSampler(kSamples, group.size(), group.rank(), sampling),
                    kBatch, cpu_device());
  Graph graph(clock);

  std::vector<double> seconds;
  for (std::int64_t epoch = 0;; ++epoch) {
    loader.start_epoch(epoch);
    for (;;) {
      const Seconds begin = clock.now();
      const std::optional<Batch> batch = loader.next();
      if (!batch) break;
      optimizer.zero_grad();
      const auto outputs = ddp ? ddp->forward(model, *batch, graph) : model.forward(*batch, graph);
      graph.backward(outputs.front());
      clip_grad_norm(model.parameters(), 1.0);
      optimizer.step();
      seconds.push_back((clock.now() - begin).count());
      if (seconds.size() == static_cast<std::size_t>(arguments.warmup + arguments.steps)) {
        seconds.erase(seconds.begin(), seconds.begin() + arguments.warmup);
        return seconds;
      }
    }
  }
}

void run(const Arguments& arguments) {
  const RankEnvironment environment = resolve_rank_environment({}).value();
  const GlooProcessGroup::Options options;
  const JobStore job = open_job_store(environment, options.timeout);
  WallClock clock;
  GlooProcessGroup group(environment, job, clock, options);

  const std::vector<double> seconds = time_steps(arguments, group, clock);
  const Tensor slowest = Tensor::from<double>(seconds, {static_cast<std::int64_t>(seconds.size())});
  group.allreduce(slowest, ReduceOp::kMax, {})->wait();
  const auto values = slowest.span<double>();
  if (group.rank() == 0) {
    std::cout << nlohmann::json{{"step_seconds", std::vector(values.begin(), values.end())}}.dump()
              << '\n';
  }
  group.shutdown();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times training steps of the handbook's model on Gloo");
  Arguments arguments;
  app.add_option("--steps", arguments.steps)->check(CLI::PositiveNumber);
  app.add_option("--warmup", arguments.warmup)->check(CLI::NonNegativeNumber);
  app.add_flag("--no-ddp", arguments.no_ddp);
  CLI11_PARSE(app, argc, argv);
  try {
    run(arguments);
  } catch (const std::exception& error) {
    std::cerr << "torch_step: " << error.what() << '\n';
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
