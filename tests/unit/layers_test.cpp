#include "gradsync/models/layers.hpp"

#include <algorithm>
#include <string>

#include "gradsync/autograd/ops.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/checkpoint.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/small_models.hpp"

using namespace gradsync;
using gradsync::test::Approx;
using gradsync::test::FakeClock;
using gradsync::test::LambdaModel;

TEST_CASE("batch norm registers its parameters and buffers with PyTorch's names and types") {
  ParameterFactory factory(0, meta_device());
  const Linear linear(factory, "0", 4, 8);
  const BatchNorm1d norm(factory, "1", 8);
  std::vector<std::string> names;
  for (const auto& parameter : factory.parameters()) names.push_back(parameter->name());
  for (const auto& buffer : factory.buffers()) names.push_back(buffer->name);
  CHECK(names == std::vector<std::string>{"0.weight", "0.bias", "1.weight", "1.bias",
                                          "1.running_mean", "1.running_var",
                                          "1.num_batches_tracked"});
  CHECK(factory.buffers()[2]->data.dtype() == DType::kInt64);
  CHECK(factory.buffers()[2]->data.shape() == Shape{});
}

TEST_CASE("a model with batch norm trains and keeps its moments in its buffers") {
  ParameterFactory factory(3, cpu_device());
  const Linear first(factory, "0", 4, 8), last(factory, "2", 8, 2);
  const BatchNorm1d norm(factory, "1", 8);
  LambdaModel model(
      factory.parameters(),
      [&](const Batch& batch, Graph& graph) {
        const Variable x{batch.tensors.at("features"), nullptr};
        const Variable hidden = norm.forward(graph, first.forward(graph, x));
        return std::vector<Variable>{
            ops::sum(graph, last.forward(graph, ops::relu(graph, hidden)))};
      },
      factory.buffers());
  FakeClock clock;
  Graph graph(clock);
  Batch batch;
  batch.tensors.set("features",
                    Tensor::from<float>({1, 2, 3, 4, -1, 0, 2, 1, 5, 5, -5, 0}, {3, 4}));
  graph.backward(model.forward(batch, graph)[0]);
  for (const auto& parameter : model.parameters()) {
    CAPTURE(parameter->name());
    CHECK(parameter->grad.defined());
  }
  CHECK(model.buffers()[2]->data.span<std::int64_t>()[0] == 1);
  const auto mean = model.buffers()[0]->data.span<float>();
  CHECK(std::any_of(mean.begin(), mean.end(), [](float x) { return x != 0; }));
}

TEST_CASE("parameters of every floating-point type get the same values, rounded") {
  const DType dtype = GENERATE(DType::kFloat16, DType::kBFloat16, DType::kFloat32);
  ParameterFactory exact(9, cpu_device(), DType::kFloat64), rounded(9, cpu_device(), dtype);
  const ParameterPtr a = exact.normal("w", {5, 5}), b = rounded.normal("w", {5, 5});
  Tensor expected = Tensor::empty({5, 5}, dtype, cpu_device());
  cpu_device().cast(expected, a->data);
  CHECK(std::equal(expected.data(), expected.data() + expected.nbytes(), b->data.data()));
}

TEST_CASE("a reentrant checkpoint gives the gradients of the function that it wraps") {
  ParameterFactory factory(3, cpu_device(), DType::kFloat64);
  const Linear inner(factory, "inner", 3, 3), outer(factory, "outer", 3, 1);
  FakeClock clock;
  Graph graph(clock);
  const Tensor x = Tensor::from<double>({1, -2, 3, 0, 5, -6}, {2, 3});
  const auto body = [&](Graph& g, const Variable& in) {
    return ops::relu(g, inner.forward(g, in));
  };
  const auto gradients = [&](bool checkpointed) {
    for (const auto& parameter : factory.parameters()) parameter->grad = Tensor();
    const Variable in = test::input_that_needs_gradient(x);
    const Variable hidden =
        checkpointed ? test::reentrant_checkpoint(graph, in, body) : body(graph, in);
    const Variable loss = ops::sum(graph, outer.forward(graph, hidden));
    CHECK(graph.reachable_parameters({loss}).size() == (checkpointed ? 2 : 4));
    graph.backward(loss);
    std::vector<double> all;
    for (const auto& parameter : factory.parameters()) {
      const auto values = parameter->grad.span<double>();
      all.insert(all.end(), values.begin(), values.end());
    }
    const auto values = static_cast<const test::InputLeaf&>(*in.node).gradient().span<double>();
    all.insert(all.end(), values.begin(), values.end());
    return all;
  };
  CHECK(gradients(true) == gradients(false));
}
