// One call of each component: how DDP would bucket three gradients, a training step of one rank on
// Gloo, and an all-reduce of four ranks on a simulated cluster.
#include <cstdio>
#include <exception>
#include <vector>

#include "gradsync/backends/gloo/gloo_process_group.hpp"
#include "gradsync/core/version.hpp"
#include "gradsync/core/wall_clock.hpp"
#include "gradsync/ddp/bucket_plan.hpp"
#include "gradsync/ddp/distributed_data_parallel.hpp"
#include "gradsync/models/transformer.hpp"
#include "gradsync/optim/sgd.hpp"
#include "gradsync/simulator/simulation.hpp"

namespace {

using namespace gradsync;

void plan_buckets() {
  const std::vector<BucketTensor> gradients = {{100'000}, {200'000}, {8'000'000}};
  const std::vector<Bytes> limits = {kDefaultFirstBucketBytes, kDefaultBucketCapBytes};
  const BucketAssignment plan = compute_bucket_assignment_by_size(gradients, limits);
  std::printf("engine: 3 gradients in %zu buckets\n", plan.buckets.size());
}

/// A job of one rank. Under a launcher, resolve_rank_environment reads rank and store from the
/// environment instead.
void train_a_step() {
  const TcpStoreServer server({.bind_address = "127.0.0.1", .port = 0});
  RankEnvironment environment;
  environment.master_port = server.port();
  environment.agent_store = true;
  const JobStore job = open_job_store(environment, Seconds{10});
  WallClock clock;
  GlooProcessGroup group(environment, job, clock, {});

  TransformerModel model({.vocab_size = 16, .d_model = 8, .nhead = 2, .num_layers = 1},
                         /* seed = */ 0, cpu_device());
  DistributedDataParallel ddp(model, group);
  Sgd optimizer(model.parameters(), {.lr = 0.1});
  const Tensor tokens = Tensor::from<std::int64_t>({1, 2, 3, 4}, /* shape = */ {1, 4});
  const Tensor targets = Tensor::from<std::int64_t>({2, 3, 4, 5}, /* shape = */ {1, 4});
  Batch batch;
  batch.tensors = {{"tokens", tokens}, {"targets", targets}};

  Graph graph(clock);
  const std::vector<Variable> outputs = ddp.forward(model, batch, graph);
  graph.backward(outputs.front());
  optimizer.step();
  std::printf("gloo: loss %.3f, %zu bucket(s)\n", outputs.front().data.span<float>().front(),
              ddp.buckets().size());
  group.shutdown();
}

void simulate_allreduce() {
  constexpr int kRanks = 4;
  const auto body = [](const RankRuntime& runtime, RankReport& report) {
    const Tensor gradients =
        Tensor::empty({1'000'000}, DType::kFloat32, meta_device());  // a shape, no bytes
    runtime.process_group->allreduce(gradients, ReduceOp::kSum, {})->wait();
    runtime.process_group->shutdown();
    report.state = RankState::kFinished;
  };
  const RunOutcome outcome = simulate(ClusterSpec{}, kRanks, SimulationOptions{}, body);
  std::printf("simulator: 4 MB among %d ranks in %.2f ms\n", kRanks,
              outcome.simulated.value().count() * 1e3);
}

}  // namespace

int main() {
  try {
    std::printf("gradsync %s\n", version());
    plan_buckets();
    train_a_step();
    simulate_allreduce();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
