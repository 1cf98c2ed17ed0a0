// What DDP itself costs a parameter and step, without communication: hooks, bookkeeping, copies.
//
// A group of one rank has nothing to communicate. The cost is the difference between
// step/ddp:1 and step/ddp:0, less `copies` (into the bucket and back, at the speed of memory);
// each is printed per parameter.
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "engine/ddp/distributed_data_parallel.hpp"

namespace {

using namespace gradsync;

class StoppedClock final : public Clock {
 public:
  Seconds now() const override { return Seconds{0}; }
  void advance(Seconds) override {}
  void charge_flops(double) override {}
};

/// A group of one rank: every collective is done when it is issued.
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

/// Gives every parameter a gradient that it has at hand, in one node a parameter.
class GivenGradient final : public Node {
 public:
  GivenGradient(NodePtr parameter, NodePtr rest, Tensor gradient)
      : Node("GivenGradient", {std::move(parameter), std::move(rest)}),
        gradient_(std::move(gradient)) {}
  std::vector<Tensor> backward(Tensor grad_output, BackwardPass&) override {
    return {gradient_, std::move(grad_output)};
  }

 private:
  Tensor gradient_;
};

class GivenModel final : public Model {
 public:
  GivenModel(std::int64_t parameters, std::int64_t elements) {
    for (std::int64_t i = 0; i < parameters; ++i) {
      parameters_.push_back(std::make_shared<Parameter>(
          "p" + std::to_string(i), Tensor::zeros({elements}, DType::kFloat32, cpu_device())));
    }
  }
  const std::vector<ParameterPtr>& parameters() const override { return parameters_; }
  const std::vector<BufferPtr>& buffers() const override { return buffers_; }
  std::vector<Variable> forward(const Batch&, Graph& graph) override {
    Variable loss{scalar_, nullptr};
    for (const ParameterPtr& parameter : parameters_) {
      loss = graph.record(scalar_, std::make_shared<GivenGradient>(graph.leaf(parameter).node,
                                                                   loss.node, parameter->data));
    }
    return {loss};
  }

 private:
  Tensor scalar_ = Tensor::zeros({}, DType::kFloat32, cpu_device());
  std::vector<ParameterPtr> parameters_;
  std::vector<BufferPtr> buffers_;
};

void per_parameter(benchmark::State& state) {
  state.counters["per_parameter"] =
      benchmark::Counter(static_cast<double>(state.iterations() * state.range(0)),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void step(benchmark::State& state) {
  StoppedClock clock;
  OneRankGroup group(clock);
  GivenModel model(state.range(0), state.range(1));
  Graph graph(clock);
  std::unique_ptr<DistributedDataParallel> ddp;
  if (state.range(2) != 0) ddp = std::make_unique<DistributedDataParallel>(model, group);
  const Batch batch;
  for (auto _ : state) {
    const auto outputs = ddp ? ddp->forward(batch, graph) : model.forward(batch, graph);
    graph.backward(outputs.front());
  }
  per_parameter(state);
}
BENCHMARK(step)
    ->ArgNames({"parameters", "elements", "ddp"})
    ->ArgsProduct({{27, 400, 4000}, {16, 4096}, {0, 1}});

void copies(benchmark::State& state) {
  GivenModel model(state.range(0), state.range(1));
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
