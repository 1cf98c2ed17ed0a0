// A model of the program's own, trained on data of its own with DistributedDataParallel, by two
// processes (gradsync launch --nproc-per-node 2 -- ./own_model) or two simulated ranks (./own_model
// --simulate 2).
#include <iostream>
#include <string>

#include <gradsync/autograd/ops.hpp>
#include <gradsync/autograd/parameter_hash.hpp>
#include <gradsync/backends/gloo/run_on_gloo.hpp>
#include <gradsync/core/random.hpp>
#include <gradsync/data/data_loader.hpp>
#include <gradsync/ddp/distributed_data_parallel.hpp>
#include <gradsync/models/layers.hpp>
#include <gradsync/optim/adamw.hpp>
#include <gradsync/simulator/run_on_simulator.hpp>

using namespace gradsync;

// [model]
/// A perceptron with one hidden layer: the class of a point of the plane.
struct Mlp {
  ParameterFactory factory{/*seed=*/0, cpu_device()};
  Linear in{factory, "in", 2, 16}, out{factory, "out", 16, 2};

  Variable loss(const Batch& batch, Graph& graph) const {
    const Variable hidden = in.forward(graph, {batch.tensors.at("points"), nullptr});
    const Variable logits = out.forward(graph, ops::relu(graph, hidden));
    return ops::cross_entropy(graph, logits, batch.tensors.at("classes"));
  }
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
  const Mlp mlp;
  DistributedDataParallel ddp(mlp.factory, group);
  AdamW optimizer(mlp.factory.parameters(), {.lr = 1e-2});
  const auto circle = make_circle(1024);
  const DistributedSampler sampler(circle->size(), group.size(), group.rank());
  DataLoader loader(*circle, sampler, /*batch_size=*/32, cpu_device());
  Graph graph(clock);
  float loss = 0;
  for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
    loader.start_epoch(epoch);
    while (const auto batch = loader.next()) {
      optimizer.zero_grad();
      const auto outputs = ddp.forward(graph, [&] { return std::vector{mlp.loss(*batch, graph)}; });
      graph.backward(outputs.front());  // leaves the mean over all ranks in every grad
      optimizer.step();
      loss = outputs.front().data.span<float>()[0];
    }
  }
  if (group.rank() != 0) return;
  std::cout << group.backend_name() << ": " << group.size() << " ranks, loss " << loss
            << ", parameter hash " << hash_parameters(mlp.factory.parameters())->hex() << '\n';
}
// [/train]

// [main]
int main(int argc, char** argv) try {
  if (argc == 3 && argv[1] == std::string("--simulate")) {
    const Seconds time = run_on_simulator(std::stoi(argv[2]), train);
    std::cout << "simulated time: " << time.count() << " s\n";
  } else {
    run_on_gloo(train);
  }
} catch (const std::exception& error) {
  std::cerr << "own_model: " << error.what() << '\n';
  return 1;
}
// [/main]
