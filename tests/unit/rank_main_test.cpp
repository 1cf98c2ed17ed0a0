#include <cmath>
#include <set>

#include "gradsync/autograd/parameter_hash.hpp"
#include "gradsync/comm/comm_error.hpp"
#include "gradsync/testbed/rank/rank_main.hpp"
#include "gradsync/testbed/result/run_result.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/train_ranks.hpp"

namespace gradsync {
namespace {

using test::contains;
using test::tiny_scenario;
using test::train_ranks;

RunResult result_of(const Scenario& scenario, const std::vector<RankReport>& reports) {
  RunOutcome outcome;
  outcome.reports = reports;
  return make_result(scenario, outcome);
}

std::vector<std::string> hashes_of(const RankReport& report) {
  std::vector<std::string> hashes;
  for (const StepRecord& step : report.steps) hashes.push_back(step.parameter_hash);
  return hashes;
}

TEST_CASE("run_rank: ranks train, take the same steps and have the same parameters after each") {
  Scenario scenario = tiny_scenario();
  scenario.train.epochs = 3;
  scenario.train.check_hashes = true;
  const auto reports = train_ranks(scenario);
  for (const RankReport& report : reports) {
    CAPTURE(report.error);
    REQUIRE(report.state == RankState::kFinished);
    CHECK_FALSE(report.error_code.has_value());
    CHECK(report.phase == Phase::kShutdown);
    CHECK(report.world_size == 2);
    CHECK(report.dataset_samples == 16);
    CHECK(report.samples_planned == 8);
    CHECK(report.steps_planned == 12);
    CHECK(report.steps_completed == 12);
    REQUIRE(report.steps.size() == 12);
    CHECK(report.steps[11].step == 11);
    CHECK(report.steps[11].epoch == 2);
    CHECK(report.steps[0].samples == 2);
    CHECK(report.steps[0].learning_rate == 1e-2);
    REQUIRE(report.steps[0].grad_norm.has_value());
    CHECK(*report.steps[0].grad_norm > 0);
    CHECK(std::isfinite(*report.steps[0].loss));
    CHECK(hashes_of(report) == hashes_of(reports[0]));
    CHECK(report.final_parameter_hash == report.steps.back().parameter_hash);
    CHECK(report.parameter_tensors > 0);
    CHECK(report.parameter_bytes == 4 * report.parameter_count);
    std::int64_t elements = 0;
    for (const BucketSummary& bucket : report.buckets) elements += bucket.elements;
    CHECK(elements == report.parameter_count);
    CHECK(report.rebuilt_buckets);
  }
  const auto hashes = hashes_of(reports[0]);
  CHECK(std::set<std::string>(hashes.begin(), hashes.end()).size() == 12);
  // Different ranks see different samples, and what is learned shows in the loss.
  CHECK(reports[0].steps[0].sample_hash != reports[1].steps[0].sample_hash);
  const RunResult result = result_of(scenario, reports);
  CHECK(result.outcome == Outcome::kCompleted);
  CHECK(*result.loss.last < *result.loss.first);
}

TEST_CASE("run_rank: a second run has the same hashes, another seed has others") {
  const Scenario scenario = tiny_scenario();
  const auto first = train_ranks(scenario);
  const auto second = train_ranks(scenario);
  CHECK(hashes_of(first[0]) == hashes_of(second[0]));
  Scenario other = scenario;
  other.seed = 1;
  CHECK(hashes_of(train_ranks(other)[0]) != hashes_of(first[0]));
}

TEST_CASE("run_rank: every collective is kept, labelled, beyond what the flight recorder holds") {
  Scenario scenario = tiny_scenario();
  scenario.train.check_hashes = true;
  scenario.output.detail_ranks = 1;
  const auto reports = train_ranks(scenario);
  CHECK(reports[1].collectives.empty());
  CHECK_FALSE(reports[1].flight.empty());
  REQUIRE(reports[0].collectives.size() == reports[0].flight.size());
  std::int64_t reductions = 0, checks = 0;
  for (const CollectiveRecord* record : all_collectives(reports[0])) {
    CHECK(record->state == CollectiveState::kCompleted);
    if (record->label.bucket >= 0) {
      ++reductions;
      CHECK(record->label.phase == Phase::kBackward);
      CHECK(record->label.step == reductions - 1);
      REQUIRE(record->parameters != nullptr);
    }
    if (record->label.phase == Phase::kCheck) ++checks;
  }
  CHECK(reductions == 4);  // all parameters fit in one bucket
  CHECK(checks == 4);
}

TEST_CASE("run_rank: hash_every and max_steps") {
  Scenario scenario = tiny_scenario();
  scenario.train.max_steps = 3;
  scenario.train.hash_every = 2;
  const auto reports = train_ranks(scenario);
  REQUIRE(reports[0].steps.size() == 3);
  CHECK(reports[0].steps[0].parameter_hash.empty());
  CHECK_FALSE(reports[0].steps[1].parameter_hash.empty());
  CHECK_FALSE(reports[0].steps[2].parameter_hash.empty());  // the last one, always

  scenario.train.hash_every = 0;
  const auto sparse = train_ranks(scenario);
  CHECK(sparse[0].steps[1].parameter_hash.empty());
  CHECK(sparse[0].final_parameter_hash == reports[0].final_parameter_hash);
}

TEST_CASE(
    "run_rank: without clipping there is no norm, and the last batch of an epoch may be smaller") {
  Scenario scenario = tiny_scenario();
  scenario.ranks = 1;
  scenario.train.clip_grad_norm.reset();
  scenario.train.batch_size = 6;
  const auto reports = train_ranks(scenario);
  REQUIRE(reports[0].steps.size() == 3);
  CHECK_FALSE(reports[0].steps[0].grad_norm.has_value());
  CHECK(reports[0].steps[2].samples == 4);
}

TEST_CASE("run_rank: without set_epoch every epoch has the same batches") {
  Scenario scenario = tiny_scenario();
  scenario.ranks = 1;
  scenario.train.epochs = 2;
  const auto steps_of = [](const Scenario& s) { return train_ranks(s)[0].steps; };
  const auto shuffled = steps_of(scenario);
  CHECK(shuffled[0].sample_hash != shuffled[8].sample_hash);
  scenario.sampler.set_epoch = false;
  const auto repeated = steps_of(scenario);
  for (std::size_t i = 0; i < 8; ++i) CHECK(repeated[i].sample_hash == repeated[i + 8].sample_hash);
}

TEST_CASE("run_rank: uneven shards really hang, and the diagnosis says which and why") {
  Scenario scenario = tiny_scenario();
  scenario.ranks = 4;
  scenario.data.samples = 10;
  scenario.train.batch_size = 1;
  scenario.sampler.pad = false;
  const auto reports = train_ranks(scenario, cpu_device(), std::chrono::milliseconds(300));
  for (int rank : {0, 1}) {
    const RankReport& report = reports[static_cast<std::size_t>(rank)];
    CHECK(report.state == RankState::kFailed);
    CHECK(report.phase == Phase::kBackward);
    CHECK(report.steps_completed == 2);
    CHECK(report.steps_planned == 3);
    REQUIRE(report.failed_collective.has_value());
    CHECK(report.failed_collective->label.step == 2);
  }
  for (int rank : {2, 3}) {
    CHECK(reports[static_cast<std::size_t>(rank)].state == RankState::kFinished);
  }
  const RunResult result = result_of(scenario, reports);
  CHECK(result.outcome == Outcome::kHang);
  CHECK(result.exit_status() == 4);
  CHECK(result.steps_completed == 2);
  REQUIRE(result.diagnosis.has_value());
  CHECK(result.diagnosis->kind == DiagnosisKind::kUnevenShards);
  CHECK(result.diagnosis->ranks == std::vector<int>{2, 3});
  CHECK(result.diagnosis->step == 2);
  CHECK(result.diagnosis->bucket == 0);

  SECTION("padding completes") {
    scenario.sampler.pad = true;
    const RunResult fixed = result_of(scenario, train_ranks(scenario));
    CHECK(fixed.outcome == Outcome::kCompleted);
    CHECK(fixed.steps_completed == 3);
  }
  SECTION("drop_last completes") {
    scenario.sampler.drop_last = true;
    const RunResult fixed = result_of(scenario, train_ranks(scenario));
    CHECK(fixed.outcome == Outcome::kCompleted);
    CHECK(fixed.steps_completed == 2);
  }
}

TEST_CASE("run_rank: uneven shards over two epochs are a desync where labels are compared") {
  Scenario scenario = tiny_scenario();
  scenario.ranks = 4;
  scenario.data.samples = 10;
  scenario.train.batch_size = 1;
  scenario.train.epochs = 2;
  scenario.sampler.pad = false;
  const auto reports = train_ranks(scenario);
  const RunResult result = result_of(scenario, reports);
  CHECK(result.outcome == Outcome::kDesync);
  REQUIRE(result.diagnosis.has_value());
  CHECK(result.diagnosis->kind == DiagnosisKind::kUnevenShards);
  CHECK(result.diagnosis->ranks == std::vector<int>{2, 3});
  CHECK(result.diagnosis->step == 2);
}

/// A profile of two parameters, 10 ms of forward, gradients at 10 and 20 ms, 5 ms of optimizer.
std::shared_ptr<const RunInputs> replay_inputs(std::int64_t samples) {
  auto profile = std::make_shared<ModelProfile>();
  profile->name = "two";
  profile->forward_time = Seconds{0.010};
  profile->optimizer_time = Seconds{0.005};
  profile->parameters = {{"first", {3, 5}, DType::kFloat32, Seconds{0.020}},
                         {"second", {7}, DType::kFloat32, Seconds{0.010}}};
  auto inputs = std::make_shared<RunInputs>();
  inputs->dataset = make_index_dataset(samples);
  inputs->profile = profile;
  return inputs;
}

Scenario replay_scenario(int ranks) {
  Scenario scenario;
  scenario.ranks = ranks;
  scenario.model.kind = ModelSpec::Kind::kReplay;
  scenario.data.kind = DataSpec::Kind::kIndices;
  scenario.data.samples = 4 * ranks;
  scenario.train.batch_size = 1;
  return scenario;
}

std::vector<RankReport> train_replay(const Scenario& scenario, Device& device) {
  const int ranks = static_cast<int>(scenario.ranks);
  std::vector<RankReport> reports(static_cast<std::size_t>(ranks));
  const auto inputs = replay_inputs(scenario.data.samples);
  test::run_ranks(ranks, [&](test::RankContext& context) {
    run_rank(scenario, {&context.group, &context.clock, &device, inputs, {}},
             reports[static_cast<std::size_t>(context.rank)]);
  });
  return reports;
}

TEST_CASE(
    "run_rank: a replayed model on meta tensors takes its profile's time and has no numbers") {
  const auto reports = train_replay(replay_scenario(2), meta_device());
  for (const RankReport& report : reports) {
    CHECK(report.state == RankState::kFinished);
    REQUIRE(report.steps.size() == 4);
    const StepRecord& step = report.steps[1];
    CHECK_FALSE(step.grad_norm.has_value());
    CHECK(step.parameter_hash.empty());
    CHECK((step.forward_end - step.data_end).count() == test::Approx(0.010));
    CHECK((step.backward_compute_end - step.forward_end).count() == test::Approx(0.020));
    CHECK((step.optimizer_end - step.backward_end).count() == test::Approx(0.005));
    CHECK(report.final_parameter_hash.empty());
    CHECK(report.parameter_count == 22);
  }
  const RunResult result = result_of(replay_scenario(2), reports);
  CHECK(result.outcome == Outcome::kCompleted);
  CHECK_FALSE(result.parameter_hash.has_value());
  CHECK(*result.time_breakdown.forward == test::Approx(0.010));
  CHECK(*result.time_breakdown.optimizer == test::Approx(0.005));
  CHECK(*result.step_seconds.p50 == test::Approx(0.035));
}

TEST_CASE("run_rank: a replayed model with bytes has the same hash on all ranks") {
  for (int ranks : {1, 2, 3, 4}) {
    std::set<std::string> hashes;
    for (const RankReport& report : train_replay(replay_scenario(ranks), cpu_device())) {
      hashes.insert(report.final_parameter_hash);
    }
    CHECK(hashes.size() == 1);
    CHECK_FALSE(hashes.contains(""));
  }
}

TEST_CASE("run_rank: parameters that part are found after that step, by all ranks") {
  // Rank 1 has a learning rate of its own.
  Scenario scenario = tiny_scenario();
  scenario.ranks = 3;
  scenario.train.check_hashes = true;
  std::vector<RankReport> reports(3);
  test::ThreadWorld world(3);
  const auto inputs = load_inputs(scenario);
  CHECK_THROWS_WITH(
      test::run_ranks(world,
                      [&](test::RankContext& context) {
                        Scenario own = scenario;
                        if (context.rank == 1) {
                          std::get<AdamWOptions>(own.optimizer.options).lr *= 1.0000001;
                        }
                        run_rank(own, {&context.group, &context.clock, &cpu_device(), inputs, {}},
                                 reports[static_cast<std::size_t>(context.rank)]);
                      }),
      contains("not the same on all ranks after step") && contains("ranks 0, 2 have"));
  for (const RankReport& report : reports) CHECK(report.error_code == ErrorCode::kDesync);
  const RunResult result = result_of(scenario, reports);
  CHECK(result.outcome == Outcome::kDesync);
  REQUIRE(result.diagnosis.has_value());
  CHECK(result.diagnosis->kind == DiagnosisKind::kLearningRateDiffers);
  CHECK(result.diagnosis->verdict == "desync");
  CHECK(result.diagnosis->ranks == std::vector<int>{1});
  CHECK_FALSE(result.parameter_hash.has_value());
}

TEST_CASE("parameter hash: canonical XXH3-128 of the bytes in order") {
  const auto parameter = [](const std::vector<float>& values) {
    return std::make_shared<Parameter>(
        "p", Tensor::from(values, {static_cast<std::int64_t>(values.size())}));
  };
  const std::vector<ParameterPtr> two{parameter({1, 2}), parameter({3})};
  const std::vector<ParameterPtr> one{parameter({1, 2, 3})};
  CHECK(hash_parameters(two)->hex() == hash_parameters(one)->hex());
  const std::vector<ParameterPtr> swapped{parameter({3}), parameter({1, 2})};
  CHECK(hash_parameters(two) != hash_parameters(swapped));
  // The published value for no input.
  CHECK(hash_indices({}).hex() == "99aa06d3014798d86001c324468d497f");
  const std::vector<ParameterPtr> meta{
      std::make_shared<Parameter>("m", Tensor::empty({2}, DType::kFloat32, meta_device()))};
  CHECK_FALSE(hash_parameters(meta).has_value());
}

}  // namespace
}  // namespace gradsync
