// A model of the program's own, trained on data of its own with DistributedDataParallel:
//
//     gradsync launch --nproc-per-node 2 -- ./own_model  two processes, with Gloo
//     ./own_model --simulate 2                           two ranks of a simulated cluster
//
// Both print the same parameter hash.
#include <iostream>
#include <string>

#include <gradsync/autograd/ops.hpp>
#include <gradsync/autograd/parameter_hash.hpp>
#include <gradsync/backends/gloo/gloo_process_group.hpp>
#include <gradsync/core/random.hpp>
#include <gradsync/core/wall_clock.hpp>
#include <gradsync/data/data_loader.hpp>
#include <gradsync/ddp/distributed_data_parallel.hpp>
#include <gradsync/models/layers.hpp>
#include <gradsync/models/model.hpp>
#include <gradsync/optim/adamw.hpp>
#include <gradsync/simulator/simulation.hpp>

using namespace gradsync;

namespace {

// [model]
/// A perceptron with one hidden layer: the class of a point of the plane.
class Mlp final : public Model {
 public:
  explicit Mlp(std::int64_t hidden)
      : in_(factory_, "in", 2, hidden), out_(factory_, "out", hidden, 2) {}

  const std::vector<ParameterPtr>& parameters() const override { return factory_.parameters(); }
  const std::vector<BufferPtr>& buffers() const override { return factory_.buffers(); }

  std::vector<Variable> forward(const Batch& batch, Graph& graph) override {
    const Variable points{batch.tensors.at("points"), nullptr};
    const Variable logits = out_.forward(graph, ops::relu(graph, in_.forward(graph, points)));
    return {ops::cross_entropy(graph, logits, batch.tensors.at("classes"))};
  }

 private:
  ParameterFactory factory_{/*seed=*/0, cpu_device()};
  Linear in_, out_;
};
// [/model]

// [data]
/// Points of a square; their class says whether they lie in a circle.
std::unique_ptr<Dataset> make_circle(std::int64_t samples) {
  const CounterRandom random(/*seed=*/1, /*stream=*/0);
  std::vector<float> points;
  std::vector<std::int64_t> classes;
  for (std::uint64_t i = 0; std::ssize(classes) < samples; ++i) {
    const double x = random.uniform(2 * i, -1, 1), y = random.uniform(2 * i + 1, -1, 1);
    points.insert(points.end(), {static_cast<float>(x), static_cast<float>(y)});
    classes.push_back(x * x + y * y < 0.5 ? 1 : 0);
  }
  return make_tensor_dataset({{"points", Tensor::from(points, {samples, 2})},
                              {"classes", Tensor::from(classes, {samples})}});
}
// [/data]

// [train]
/// What each rank does, on whatever moves the bytes and keeps the time.
void train(ProcessGroup& group, Clock& clock) {
  Mlp model(/*hidden=*/16);
  DistributedDataParallel ddp(model, group);
  AdamW optimizer(model.parameters(), {.lr = 1e-2});
  const auto dataset = make_circle(1024);
  DistributedSampler sampler(dataset->size(), group.size(), group.rank());
  DataLoader loader(*dataset, sampler, /*batch_size=*/32, cpu_device());
  Graph graph(clock);
  float last_loss = 0;
  for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
    loader.start_epoch(epoch);
    while (const auto batch = loader.next()) {
      optimizer.zero_grad();
      const Variable loss = ddp.forward(model, *batch, graph).front();
      graph.backward(loss);  // leaves the mean over all ranks in every grad
      optimizer.step();
      last_loss = loss.data.span<float>()[0];
    }
  }
  group.shutdown();
  if (group.rank() != 0) return;
  std::cout << group.backend_name() << ": " << group.size() << " ranks, loss " << last_loss
            << ", parameter hash " << hash_parameters(model.parameters())->hex() << std::endl;
}
// [/train]

// [gloo]
/// This process is one rank; a launcher has said which.
void train_on_gloo() {
  const auto environment = resolve_rank_environment({});
  if (!environment)
    throw Error(ErrorCode::kUsage, "start it with gradsync launch, or --simulate N");
  const GlooProcessGroup::Options options;
  const JobStore job = open_job_store(*environment, options.timeout);
  WallClock clock;
  GlooProcessGroup group(*environment, job, clock, options);
  train(group, clock);
}
// [/gloo]

// [simulate]
/// All ranks run in this process, on a simulated network of the default cluster.
void train_simulated(int ranks) {
  SimulationOptions options;
  options.device = &cpu_device();
  options.stack_bytes = SimulationOptions::kComputeStackBytes;
  const RunOutcome outcome =
      simulate({}, ranks, options, [](const RankRuntime& runtime, RankReport&) {
        train(*runtime.process_group, *runtime.clock);
      });
  for (const RankReport& report : outcome.reports) {
    if (!report.error.empty()) throw Error(report.error_code.value(), report.error);
  }
  std::cout << "simulated time: " << outcome.simulated->count() << " s\n";
}
// [/simulate]

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    if (arguments.size() == 2 && arguments[0] == "--simulate") {
      train_simulated(std::stoi(arguments[1]));
    } else {
      train_on_gloo();
    }
  } catch (const std::exception& error) {
    std::cerr << "own_model: " << error.what() << '\n';
    return 1;
  }
}
