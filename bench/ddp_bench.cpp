// The cost of DDP per parameter and step, without communication: hooks, bookkeeping, copies.
//
// A group of one rank has nothing to communicate. The cost is step/ddp:1 minus step/ddp:0 minus
// `copies` (into the bucket and back, at memory speed); each is printed per parameter.
#include <memory>

#include <benchmark/benchmark.h>

#include "bench/given_model.hpp"
#include "gradsync/ddp/distributed_data_parallel.hpp"

namespace {

using namespace gradsync;
using namespace gradsync::bench;

class StoppedClock final : public Clock {
 public:
  Seconds now() const override { return Seconds{0}; }
  void advance(Seconds) override {}
  void charge_flops(double) override {}
};

/// A group of one rank: every collective completes when it is issued.
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
    Tensor only = output.slice(0, input.shape());
    only.device().copy(only, input);
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

void per_parameter(benchmark::State& state) {
  state.counters["per_parameter"] =
      benchmark::Counter(static_cast<double>(state.iterations() * state.range(0)),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void step(benchmark::State& state) {
  StoppedClock clock;
  OneRankGroup group(clock);
  GivenModel model(state.range(0), state.range(1), cpu_device());
  Graph graph(clock);
  std::unique_ptr<DistributedDataParallel> ddp;
  if (state.range(2) != 0) ddp = std::make_unique<DistributedDataParallel>(model, group);
  const Batch batch;
  for (auto _ : state) {
    const auto outputs = ddp ? ddp->forward(model, batch, graph) : model.forward(batch, graph);
    graph.backward(outputs.front());
  }
  per_parameter(state);
}
BENCHMARK(step)
    ->ArgNames({"parameters", "elements", "ddp"})
    ->ArgsProduct({{27, 400, 4000}, {16, 4096}, {0, 1}});

void copies(benchmark::State& state) {
  GivenModel model(state.range(0), state.range(1), cpu_device());
  Tensor bucket = Tensor::zeros({state.range(0) * state.range(1)}, DType::kFloat32, cpu_device());
  std::vector<Tensor> views;
  for (std::int64_t i = 0; i < state.range(0); ++i)
    views.push_back(bucket.slice(i * state.range(1), {state.range(1)}));
  for (auto _ : state) {
    for (std::size_t i = 0; i < views.size(); ++i)
      cpu_device().copy(views[i], model.parameters()[i]->data);
    for (std::size_t i = 0; i < views.size(); ++i)
      cpu_device().copy(model.parameters()[i]->data, views[i]);
  }
  per_parameter(state);
}
BENCHMARK(copies)->ArgNames({"parameters", "elements"})->ArgsProduct({{27, 400, 4000}, {16, 4096}});

}  // namespace
