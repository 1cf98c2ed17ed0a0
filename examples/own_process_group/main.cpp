// Data-parallel training over a process group of the program's own. Each process is a rank:
//
//     own_process_group FOLDER RANK RANKS
#include <iostream>
#include <string>

#include <gradsync/autograd/ops.hpp>
#include <gradsync/autograd/parameter_hash.hpp>
#include <gradsync/core/wall_clock.hpp>
#include <gradsync/ddp/distributed_data_parallel.hpp>
#include <gradsync/models/layers.hpp>
#include <gradsync/optim/sgd.hpp>

#include "file_process_group.hpp"

using namespace gradsync;

namespace {

void train(ProcessGroup& group, Clock& clock) {
  ParameterFactory factory(/*seed=*/0, cpu_device());
  const Linear layer(factory, "layer", 4, 2);
  DistributedDataParallel ddp(factory, group);
  Sgd optimizer(factory.parameters(), {.lr = 0.1});
  Graph graph(clock);
  // Four rows of this rank's own, of which each is its class.
  const auto shift = static_cast<float>(group.rank());
  const Tensor rows = Tensor::from<float>(
      {1 + shift, 0, 0, shift, 0, 1 - shift, shift, 0, 1, 1, -shift, 0, shift, 0, 1, 2}, {4, 4});
  const Tensor classes = Tensor::from<std::int64_t>({0, 1, 0, 1}, {4});
  for (int step = 0; step < 10; ++step) {
    optimizer.zero_grad();
    const auto outputs = ddp.forward(graph, [&] {
      return std::vector{ops::cross_entropy(graph, layer.forward(graph, {rows, nullptr}), classes)};
    });
    graph.backward(outputs.front());
    optimizer.step();
  }
  group.shutdown();
  std::cout << "rank " << group.rank() << ": parameter hash "
            << hash_parameters(factory.parameters())->hex() << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: own_process_group FOLDER RANK RANKS\n";
    return 1;
  }
  try {
    WallClock clock;
    FileProcessGroup group(argv[1], std::stoi(argv[2]), std::stoi(argv[3]), clock);
    train(group, clock);
  } catch (const std::exception& error) {
    std::cerr << "own_process_group: " << error.what() << '\n';
    return 1;
  }
}
