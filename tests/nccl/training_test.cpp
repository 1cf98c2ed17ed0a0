// The engine as it is, on the stand-in: the kernels' own source, the real process group, the
// reducer and the training loop. What differs from the CPU is the order of sums.
#include <fstream>

#include "gradsync/autograd/ops.hpp"
#include "gradsync/ddp/distributed_data_parallel.hpp"
#include "gradsync/optim/adamw.hpp"
#include "gradsync/testbed/rank/rank_main.hpp"
#include "tests/fake_cuda/cuda_job.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/small_models.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/train_ranks.hpp"

using namespace gradsync;
using namespace gradsync::test;

namespace {

std::vector<RankReport> train_on_stand_in(const Scenario& scenario, CudaJob& job) {
  std::vector<RankReport> reports(static_cast<std::size_t>(job.size()));
  std::vector<int> ranks;
  for (int r = 0; r < job.size(); ++r) ranks.push_back(r);
  const auto errors = job.run_on(ranks, [&](CudaRank& rank) {
    RankRuntime runtime;
    runtime.process_group = rank.group;
    runtime.clock = rank.clock;
    runtime.device = rank.device;
    run_rank(scenario, runtime, reports[static_cast<std::size_t>(rank.group->rank())]);
  });
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return reports;
}

/// A profile whose gradients and updates are exact in every order.
Scenario replay_scenario(const std::string& profile) {
  Scenario scenario = tiny_scenario();
  scenario.model.kind = ModelSpec::Kind::kReplay;
  scenario.model.replay.profile = profile;
  scenario.data.kind = DataSpec::Kind::kIndices;
  scenario.optimizer.options = SgdOptions{.lr = 0.125};
  scenario.train.clip_grad_norm.reset();
  scenario.ddp.bucket_cap_mb = 0.01;
  return scenario;
}

constexpr const char* kProfile = R"({
  "name": "four", "source": "made up", "confidence": "synthetic",
  "forward": "100us", "optimizer": "10us",
  "parameters": [
    {"name": "a", "shape": [40, 30], "ready": "90us"},
    {"name": "b", "shape": [1000], "ready": "40us"},
    {"name": "c", "shape": [3000], "ready": "30us"},
    {"name": "d", "shape": [7], "ready": "20us"}
  ]
})";

}  // namespace

TEST_CASE("nccl: a transformer's losses are the CPU's within 1e-4 over 32 steps") {
  Scenario scenario = tiny_scenario();
  scenario.train.epochs = 8;
  scenario.train.check_hashes = true;
  const auto on_cpu = train_ranks(scenario);
  CudaJob job(2);
  const auto on_gpu = train_on_stand_in(scenario, job);
  for (std::size_t r = 0; r < 2; ++r) {
    REQUIRE(on_cpu[r].steps.size() == 32);
    REQUIRE(on_gpu[r].steps.size() == 32);
    for (std::size_t step = 0; step < 32; ++step) {
      CAPTURE(r, step);
      CHECK(*on_gpu[r].steps[step].loss == Approx(*on_cpu[r].steps[step].loss).epsilon(1e-4));
      CHECK(*on_gpu[r].steps[step].grad_norm ==
            Approx(*on_cpu[r].steps[step].grad_norm).epsilon(1e-3));
      // All ranks have the same parameters, to the bit.
      CHECK(on_gpu[r].steps[step].parameter_hash == on_gpu[0].steps[step].parameter_hash);
    }
  }
}

TEST_CASE("nccl: the same run gives the same hashes") {
  const Scenario scenario = tiny_scenario();
  CudaJob one(2), other(2);
  CHECK(train_on_stand_in(scenario, one)[0].final_parameter_hash ==
        train_on_stand_in(scenario, other)[0].final_parameter_hash);
}

TEST_CASE("nccl: replayed gradients are reduced exactly: hashes are the CPU's, bit for bit") {
  const TemporaryDirectory directory;
  const std::string profile = (directory.path() / "profile.json").string();
  std::ofstream(profile) << kProfile;
  Scenario scenario = replay_scenario(profile);
  scenario.ranks = GENERATE(2, 3);
  scenario.ddp.gradient_as_bucket_view = GENERATE(false, true);
  if (GENERATE(false, true)) {
    scenario.optimizer.options = AdamWOptions{.lr = 0.125, .weight_decay = 0};
  }
  const auto on_cpu = train_ranks(scenario);
  CudaJob job(static_cast<int>(scenario.ranks));
  const auto on_gpu = train_on_stand_in(scenario, job);
  REQUIRE(on_gpu[0].steps.size() == on_cpu[0].steps.size());
  for (std::size_t step = 0; step < on_gpu[0].steps.size(); ++step) {
    CHECK(on_gpu[0].steps[step].parameter_hash == on_cpu[0].steps[step].parameter_hash);
  }
  CHECK(on_gpu[0].buckets.size() > 1);
}

TEST_CASE("nccl: the mean by NCCL's average has the values of the mean by predivision") {
  Scenario scenario = tiny_scenario();
  scenario.ddp.gradient_as_bucket_view = GENERATE(false, true);
  CudaJob one(2), other(2);
  const auto predivided = train_on_stand_in(scenario, one);
  scenario.ddp.gradient_mean = GradientMean::kAverage;
  const auto averaged = train_on_stand_in(scenario, other);
  REQUIRE(averaged[0].steps.size() == predivided[0].steps.size());
  // Of two ranks: halving is exact, before the sum as in it.
  CHECK(averaged[0].final_parameter_hash == predivided[0].final_parameter_hash);
  CHECK(one.rank(0).nccl.averages() == 0);
  CHECK(other.rank(0).nccl.averages() >= static_cast<int>(averaged[0].steps.size()));
}

TEST_CASE("nccl: a step's times come from events on the compute stream") {
  const TemporaryDirectory directory;
  const std::string profile = (directory.path() / "profile.json").string();
  std::ofstream(profile) << kProfile;
  CudaJob job(2);
  const auto reports = train_on_stand_in(replay_scenario(profile), job);
  for (const StepRecord& step : reports[0].steps) {
    CHECK(step.begin <= step.data_end);
    CHECK(step.data_end < step.forward_end);  // the replayed forward is on the GPU
    CHECK(step.forward_end <= step.comm_begin);
    CHECK(step.comm_begin <= step.comm_end);
    CHECK(step.backward_compute_end <= step.comm_end);
    CHECK(step.comm_end <= step.backward_end);
    CHECK(step.backward_end <= step.optimizer_end);
    CHECK(step.optimizer_end <= step.end);
  }
}

TEST_CASE("nccl: a hang in training ends as one, with the step in the rank's report") {
  Scenario scenario = tiny_scenario();
  scenario.sampler.shard_sizes = {8, 6};  // rank 1 has a batch less
  scenario.sampler.pad = false;
  CudaJob job(2);
  job.options.timeout = Seconds(1);
  std::vector<RankReport> reports(2);
  job.run_on({0, 1}, [&](CudaRank& rank) {
    RankRuntime runtime;
    runtime.process_group = rank.group;
    runtime.clock = rank.clock;
    runtime.device = rank.device;
    run_rank(scenario, runtime, reports[static_cast<std::size_t>(rank.group->rank())]);
  });
  CHECK(reports[0].state == RankState::kFailed);
  CHECK(reports[0].error_code == ErrorCode::kTimeout);
  REQUIRE(reports[0].failed_collective.has_value());
  CHECK(reports[0].failed_collective->label.step == 3);
  CHECK(reports[0].steps_completed == 3);
  CHECK(reports[1].steps_completed == 3);
  CHECK(reports[1].state == RankState::kFinished);
}

TEST_CASE("nccl: a step that clips waits for the GPU once, when all of it has been issued") {
  Scenario scenario = tiny_scenario();
  scenario.train.epochs = 2;
  scenario.train.hash_every = 0;  // a hash reads all parameters
  REQUIRE(scenario.train.clip_grad_norm.has_value());
  CudaJob job(2);
  job.device_options.patience = Seconds(20);
  std::vector<std::vector<std::int64_t>> waits(2);
  std::vector<RankReport> reports(2);
  const auto errors = job.run_on({0, 1}, [&](CudaRank& rank) {
    const auto r = static_cast<std::size_t>(rank.group->rank());
    // The GPU stands still from the end of one step until the host waits in the next.
    std::unique_ptr<Gate> gate;
    rank.device->set_interruption([&] { gate.reset(); });
    const std::function<void(const StepRecord&)> on_step = [&](const StepRecord&) {
      waits[r].push_back(rank.device->host_waits());
      gate = std::make_unique<Gate>(rank.compute_stream());
    };
    RankRuntime runtime;
    runtime.process_group = rank.group;
    runtime.clock = rank.clock;
    runtime.device = rank.device;
    runtime.on_step = on_step;
    run_rank(scenario, runtime, reports[r]);
  });
  for (const auto& error : errors) CHECK_FALSE(error);
  for (std::size_t r = 0; r < 2; ++r) {
    REQUIRE(waits[r].size() == 8);
    // The second step rebuilds the buckets, of which rank 0's order is read; after the last step
    // comes a hash.
    for (std::size_t step = 2; step < 7; ++step) {
      CAPTURE(r, step);
      CHECK(waits[r][step] - waits[r][step - 1] == 1);
      CHECK(reports[r].steps[step].grad_norm.has_value());
    }
  }
}

TEST_CASE("nccl: forward, backward and update are issued without waiting for the GPU once") {
  CudaJob job(2);
  job.device_options.patience = Seconds(20);  // a host that waits would wait for ever
  std::vector<int> issued(2, 0);
  std::vector<std::int64_t> launches(2, 0);
  job.run([&](CudaRank& rank) {
    const auto r = static_cast<std::size_t>(rank.group->rank());
    std::vector<ParameterPtr> parameters;
    for (int i = 0; i < 20; ++i) {
      parameters.push_back(std::make_shared<Parameter>(
          "p" + std::to_string(i), Tensor::zeros({10}, DType::kFloat32, *rank.device)));
    }
    LambdaModel model(parameters, [&](const Batch&, Graph& graph) {
      Variable total = ops::sum(graph, graph.leaf(parameters[0]));
      for (std::size_t i = 1; i < parameters.size(); ++i) {
        total = ops::add(graph, total, ops::sum(graph, graph.leaf(parameters[i])));
      }
      return std::vector<Variable>{total};
    });
    DdpOptions options;
    options.bucket_cap_mb = 0.0001;
    DistributedDataParallel ddp(model, *rank.group, options);
    AdamW optimizer(parameters);
    Graph graph(*rank.clock);
    const auto step = [&] {
      optimizer.zero_grad();
      graph.backward(ddp.forward(model, Batch{}, graph).front());
      optimizer.step();
    };
    step();
    step();  // the buckets are rebuilt, which tells the host what rank 0 says
    rank.clock->settle_stamps();
    const std::int64_t before = rank.compute_stream().launches();
    {
      Gate gate(rank.compute_stream());
      step();
      issued[r] = 1;
    }
    launches[r] = rank.compute_stream().launches() - before;
    rank.clock->settle_stamps();
  });
  CHECK(issued == std::vector<int>{1, 1});
  // 20 parameters in some buckets: the tape's own kernels, one fill and one read-out a bucket, one
  // update. A launch for each parameter's copy would be 40 more.
  CHECK(launches[0] < 20 * 2 + 20 + 30);
}

TEST_CASE("nccl: a step that is left half-way gets no times, and a sleeping rank's GPU no work") {
  CudaJob job(1);
  job.run([&](CudaRank& rank) {
    Seconds left{-1}, kept{-1};
    rank.clock->stamp(left);
    rank.clock
        ->forget_stamps();  // the step, and with it what the stamp would be written to, is gone
    rank.clock->stamp(kept);
    rank.clock->settle_stamps();
    CHECK(left == Seconds(-1));
    CHECK(kept > Seconds(0));

    const std::int64_t launches = rank.compute_stream().launches();
    const Seconds begin = rank.clock->now();
    rank.clock->sleep(Seconds(0.02));
    CHECK(rank.clock->now() - begin >= Seconds(0.02));
    CHECK(rank.compute_stream().launches() == launches);
  });
}
