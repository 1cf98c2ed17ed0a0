// The gradsync command with a model and a data set of the program's own, which scenarios can name:
//
//     own_command run scenario.json                   on Gloo, one process per rank
//     own_command run scenario.json --backend sim     on a simulated cluster
//
// All other subcommands work as well: check, sweep, tune, diagnose.
#include <gradsync/autograd/ops.hpp>
#include <gradsync/command/command_main.hpp>
#include <gradsync/core/random.hpp>
#include <gradsync/data/dataset.hpp>
#include <gradsync/models/layers.hpp>
#include <gradsync/models/model.hpp>
#include <gradsync/testbed/scenario/registry.hpp>

using namespace gradsync;

// [model]
/// A perceptron with one hidden layer: the class of a point of the plane.
class Mlp final : public Model {
 public:
  explicit Mlp(const ModelRequest& request)
      : factory_(request.seed, request.device),
        in_(factory_, "in", 2, request.options.integer("hidden")),
        out_(factory_, "out", request.options.integer("hidden"), 2) {}

  const std::vector<ParameterPtr>& parameters() const override { return factory_.parameters(); }
  const std::vector<BufferPtr>& buffers() const override { return factory_.buffers(); }

  std::vector<Variable> forward(const Batch& batch, Graph& graph) override {
    const Variable hidden = in_.forward(graph, {batch.tensors.at("points"), nullptr});
    const Variable logits = out_.forward(graph, ops::relu(graph, hidden));
    return {ops::cross_entropy(graph, logits, batch.tensors.at("classes"))};
  }

 private:
  ParameterFactory factory_;
  Linear in_, out_;
};
// [/model]

/// Points of a square; their class says whether they lie in a circle.
std::unique_ptr<Dataset> make_circle(const KindOptions& options) {
  const std::int64_t samples = options.integer("samples");
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

// [main]
int main(int argc, char** argv) {
  register_model(
      "mlp", [](const ModelRequest& request) { return std::make_unique<Mlp>(request); },
      {.summary = "A perceptron with one hidden layer.", .options = R"({"hidden": 16})"});
  register_dataset("circle", make_circle,
                   {.summary = "Points in and around a circle.", .options = R"({"samples": 256})"});
  return command_main(argc, argv);
}
// [/main]
