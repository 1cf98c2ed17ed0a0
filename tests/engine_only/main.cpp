// Trains one rank with nothing but gradsync::engine: the proof that the engine needs no backend.
// The backend of this program is its own, a clock and a group of one rank.
#include <chrono>
#include <cstdio>

#include "gradsync/comm/process_group.hpp"
#include "gradsync/core/clock.hpp"
#include "gradsync/testbed/rank/rank_main.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace {

using namespace gradsync;

class SteadyClock final : public Clock {
 public:
  Seconds now() const override { return std::chrono::steady_clock::now() - start_; }
  void advance(Seconds) override {}
  void charge_flops(double) override {}

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// With one rank every collective is done at once, and its result is its input.
class OneRankGroup final : public ProcessGroup {
 public:
  explicit OneRankGroup(Clock& clock)
      : ProcessGroup(0, 1, "default_pg", clock, std::make_shared<FlightRecorder>()) {}
  std::string backend_name() const override { return "none"; }
  void shutdown() override {}

 protected:
  WorkPtr do_allreduce(Tensor, ReduceOp, const CollectiveRecord& record) override {
    return done(record);
  }
  WorkPtr do_broadcast(Tensor, int, const CollectiveRecord& record) override {
    return done(record);
  }
  WorkPtr do_allgather(Tensor output, Tensor input, const CollectiveRecord& record) override {
    Tensor slice = output.view(input.shape());
    output.device().copy(slice, input);
    return done(record);
  }
  WorkPtr do_barrier(const CollectiveRecord& record) override { return done(record); }

 private:
  WorkPtr done(const CollectiveRecord& record) {
    flight_recorder().start(record.group, record.sequence, clock().now());
    flight_recorder().complete(record.group, record.sequence, clock().now());
    return completed_work();
  }
};

constexpr const char* kScenario = R"({
  "name": "engine-only",
  "ranks": 1,
  "model": {"kind": "transformer", "vocab_size": 64, "d_model": 32, "nhead": 4, "num_layers": 1,
            "dim_feedforward": 64},
  "data": {"kind": "synthetic_tokens", "samples": 64, "seq_len": 8, "vocab_size": 64},
  "train": {"batch_size": 8, "epochs": 8}
})";

}  // namespace

int main() {
  const Scenario scenario = parse_scenario(kScenario, "engine-only", ".");
  SteadyClock clock;
  OneRankGroup group(clock);
  RankRuntime runtime;
  runtime.process_group = &group;
  runtime.clock = &clock;
  runtime.device = &cpu_device();

  RankReport report;
  run_rank(scenario, runtime, report);

  const double first = report.steps.front().loss.value();
  const double last = report.steps.back().loss.value();
  std::printf("%lld steps, loss %.4f -> %.4f, parameters %s\n",
              static_cast<long long>(report.steps_completed), first, last,
              report.final_parameter_hash.c_str());
  const bool trained = report.state == RankState::kFinished && report.steps_completed == 64 &&
                       last < first && report.final_parameter_hash.size() == 32;
  return trained ? 0 : 1;
}
