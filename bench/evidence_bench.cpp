// The cost of a step's always-on evidence: the records of its collectives, the rank's log, and the
// parameter hashes. docs/performance.md compares the sum to the duration of a step.
#include <memory>
#include <numeric>
#include <vector>

#include <benchmark/benchmark.h>

#include "gradsync/autograd/parameter_hash.hpp"
#include "gradsync/ddp/loop_position.hpp"
#include "gradsync/models/transformer.hpp"
#include "gradsync/testbed/record/report_keeper.hpp"

namespace {

using namespace gradsync;

class TickingClock final : public Clock {
 public:
  Seconds now() const override { return Seconds{static_cast<double>(++ticks_) * 1e-6}; }
  void advance(Seconds) override {}
  void charge_flops(double) override {}

 private:
  mutable std::int64_t ticks_ = 0;
};

/// One bucket's all-reduce: its label with the call site, and its three flight recorder calls.
void collective_record(benchmark::State& state) {
  FlightRecorder recorder;
  LoopPosition position{0, 0, 0, {__FILE__, __LINE__}};
  const auto names = std::make_shared<const std::vector<std::string>>(15, "layers.0.norm1.weight");
  for (auto _ : state) {
    ++position.step;
    CollectiveOptions options = position.options(Phase::kBackward, "gradients", 0, names);
    CollectiveRecord record;
    record.group = kDefaultGroupName;
    record.elements = 1'567'208;
    record.label = std::move(options.label);
    record.parameters = std::move(options.parameters);
    const std::int64_t sequence = recorder.schedule(std::move(record));
    recorder.start(kDefaultGroupName, sequence, Seconds{0});
    recorder.complete(kDefaultGroupName, sequence, Seconds{1});
  }
}
BENCHMARK(collective_record);

/// The rank's log of a step of 32 samples: phases, samples with their hash, and the step's record.
void step_log(benchmark::State& state) {
  TickingClock clock;
  FlightRecorder recorder;
  RankReport report;
  std::mutex mutex;
  ReportKeeper keeper(report, clock, recorder, &mutex, /*collects=*/false);
  std::vector<std::int64_t> samples(32);
  std::iota(samples.begin(), samples.end(), 0);
  constexpr Phase kPhases[] = {Phase::kData, Phase::kForward, Phase::kBackward, Phase::kOptimizer,
                               Phase::kCheck};
  for (auto _ : state) {
    for (const Phase phase : kPhases) keeper.enter(phase);
    keeper.add_samples(0, samples);
    StepRecord record;
    record.sample_hash = hash_indices(samples).hex();
    keeper.add_step(std::move(record));
    if (report.steps.size() == 4096) report.steps.clear();  // bounds the memory
  }
}
BENCHMARK(step_log);

/// The handbook's 1,567,208 parameters: one hash of all, and a checksum per tensor.
void parameter_hashes(benchmark::State& state) {
  const TransformerModel model({}, /* seed = */ 0, cpu_device());
  const std::vector<ParameterPtr>& parameters = model.parameters();
  std::vector<Tensor> tensors;
  for (const ParameterPtr& parameter : parameters) tensors.push_back(parameter->data);
  for (auto _ : state) {
    benchmark::DoNotOptimize(hash_parameters(parameters));
    benchmark::DoNotOptimize(checksum(tensors));
  }
}
BENCHMARK(parameter_hashes)->Unit(benchmark::kMicrosecond);

}  // namespace
