#include "gradsync/autograd/ops.hpp"

#include <cmath>
#include <cstring>
#include <functional>

#include "gradsync/core/error.hpp"
#include "gradsync/core/random.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/fake_clock.hpp"

using namespace gradsync;
using gradsync::test::Approx;
using gradsync::test::contains;
using gradsync::test::FakeClock;

namespace {

Tensor random_tensor(const Shape& shape, std::uint64_t stream, DType dtype = DType::kFloat64) {
  const CounterRandom random(1, stream);
  std::vector<double> values(static_cast<std::size_t>(numel_of(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = random.normal(i);
  Tensor tensor = Tensor::empty(shape, dtype, cpu_device());
  cpu_device().cast(tensor, Tensor::from<double>(values, shape));
  return tensor;
}

Tensor indices(const Shape& shape, std::int64_t limit, std::uint64_t stream) {
  const CounterRandom random(2, stream);
  std::vector<std::int64_t> values(static_cast<std::size_t>(numel_of(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::int64_t>(random.bits(i) % static_cast<std::uint64_t>(limit));
  }
  return Tensor::from<std::int64_t>(values, shape);
}

std::vector<ParameterPtr> parameters_of(const std::vector<Tensor>& values) {
  std::vector<ParameterPtr> parameters;
  for (const Tensor& value : values) {
    parameters.push_back(
        std::make_shared<Parameter>("p" + std::to_string(parameters.size()), value));
  }
  return parameters;
}

using Function = std::function<Variable(Graph&, const std::vector<Variable>&)>;

/// Checks the gradients of sum(weights * function(inputs)), for random weights, against central
/// differences in float64.
void check_gradients(const std::vector<Tensor>& inputs, const Function& function) {
  FakeClock clock;
  Graph graph(clock);
  const auto parameters = parameters_of(inputs);
  const auto evaluate = [&] {
    std::vector<Variable> leaves;
    for (const auto& parameter : parameters) leaves.push_back(graph.leaf(parameter));
    return function(graph, leaves);
  };
  const Variable out = evaluate();
  const Tensor weights = random_tensor(out.data.shape(), 99);
  graph.backward({out}, {weights});

  const auto weighted_sum = [&] {
    const NoGradGuard guard(graph);
    const Tensor value = evaluate().data;
    double sum = 0;
    for (std::size_t i = 0; i < value.span<double>().size(); ++i) {
      sum += value.span<double>()[i] * weights.span<double>()[i];
    }
    return sum;
  };
  constexpr double kStep = 1e-6;
  for (const auto& parameter : parameters) {
    CAPTURE(parameter->name());
    REQUIRE(parameter->grad.defined());
    for (std::size_t i = 0; i < parameter->data.span<double>().size(); ++i) {
      CAPTURE(i);
      double& x = parameter->data.span<double>()[i];
      const double before = x;
      x = before + kStep;
      const double above = weighted_sum();
      x = before - kStep;
      const double below = weighted_sum();
      x = before;
      REQUIRE(parameter->grad.span<double>()[i] ==
              Approx((above - below) / (2 * kStep)).epsilon(1e-6).margin(1e-7));
    }
  }
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.nbytes() == b.nbytes() &&
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.nbytes())) == 0;
}

}  // namespace

TEST_CASE("gradients of linear agree with finite differences") {
  check_gradients(
      {random_tensor({2, 3, 5}, 0), random_tensor({4, 5}, 1), random_tensor({4}, 2)},
      [](Graph& graph, const auto& in) { return ops::linear(graph, in[0], in[1], in[2]); });
  check_gradients(
      {random_tensor({3, 5}, 0), random_tensor({4, 5}, 1)},
      [](Graph& graph, const auto& in) { return ops::linear(graph, in[0], in[1], {}); });
}

TEST_CASE("gradients of embedding agree with finite differences") {
  const Tensor ids = Tensor::from<std::int64_t>({0, 3, 3, 1, 3, 0}, {2, 3});
  check_gradients({random_tensor({5, 4}, 0)},
                  [&](Graph& graph, const auto& in) { return ops::embedding(graph, ids, in[0]); });
}

TEST_CASE("gradients of layer_norm agree with finite differences") {
  // 19 columns: two whole groups of lanes and a rest.
  check_gradients(
      {random_tensor({2, 3, 19}, 0), random_tensor({19}, 1), random_tensor({19}, 2)},
      [](Graph& graph, const auto& in) { return ops::layer_norm(graph, in[0], in[1], in[2]); });
}

TEST_CASE("gradients of self_attention agree with finite differences") {
  check_gradients({random_tensor({2, 5, 3 * 6}, 0)}, [](Graph& graph, const auto& in) {
    return ops::self_attention(graph, in[0], 3);
  });
}

TEST_CASE("gradients of multi_head_attention agree with finite differences") {
  check_gradients({random_tensor({2, 3, 4}, 0), random_tensor({12, 4}, 1), random_tensor({12}, 2),
                   random_tensor({4, 4}, 3), random_tensor({4}, 4)},
                  [](Graph& graph, const auto& in) {
                    return ops::multi_head_attention(graph, in[0], {in[1], in[2], in[3], in[4]}, 2);
                  });
}

TEST_CASE("gradients of relu and add agree with finite differences") {
  check_gradients({random_tensor({3, 7}, 0), random_tensor({3, 7}, 1)},
                  [](Graph& graph, const auto& in) {
                    // x is used three times, and relu's gradient is shared with add's other input.
                    const Variable sum = ops::add(graph, in[0], in[1]);
                    return ops::add(graph, ops::add(graph, ops::relu(graph, sum), sum), in[0]);
                  });
}

TEST_CASE("temporaries are overwritten, variables that are still held are not") {
  check_gradients({random_tensor({3, 5}, 0), random_tensor({5, 5}, 1)},
                  [](Graph& graph, const auto& in) {
                    const Variable relued = ops::relu(graph, ops::linear(graph, in[0], in[1], {}));
                    return ops::add(graph, relued, ops::linear(graph, relued, in[1], {}));
                  });
  FakeClock clock;
  Graph graph(clock);
  const Variable x{Tensor::from<float>({-1, 2}, {2}), nullptr};
  const float* const memory = x.data.span<float>().data();
  const Variable y = ops::add(graph, x, ops::relu(graph, x));
  CHECK(x.data.span<float>()[0] == -1.0f);
  CHECK(y.data.span<float>()[0] == -1.0f);
  CHECK(y.data.span<float>()[1] == 4.0f);
  CHECK(ops::relu(graph, {x.data.clone(), nullptr}).data.span<float>()[0] == 0.0f);
  CHECK(y.data.span<float>().data() != memory);
}

TEST_CASE("gradients of batch_norm agree with finite differences") {
  check_gradients({random_tensor({3, 4, 5}, 0), random_tensor({5}, 1), random_tensor({5}, 2)},
                  [](Graph& graph, const auto& in) {
                    ops::BatchNormState state{Tensor::zeros({5}, DType::kFloat64, cpu_device()),
                                              Tensor::zeros({5}, DType::kFloat64, cpu_device()),
                                              Tensor::zeros({}, DType::kInt64, cpu_device())};
                    return ops::batch_norm(graph, in[0], in[1], in[2], state);
                  });
}

TEST_CASE("batch_norm moves the running moments as PyTorch does") {
  FakeClock clock;
  Graph graph(clock);
  const Variable x{Tensor::from<float>({1, 10, 3, 20, 5, 60}, {3, 2}), nullptr};
  const Variable weight{Tensor::from<float>({1, 2}, {2}), nullptr};
  const Variable bias{Tensor::from<float>({0, 1}, {2}), nullptr};
  ops::BatchNormState state{Tensor::from<float>({0, 0}, {2}), Tensor::from<float>({1, 1}, {2}),
                            Tensor::from<std::int64_t>({7}, {})};
  const Variable out = ops::batch_norm(graph, x, weight, bias, state);
  // Means 3 and 30; variances 8/3 and 1400/3, without bias 4 and 700.
  CHECK(state.running_mean.span<float>()[0] == Approx(0.3));
  CHECK(state.running_mean.span<float>()[1] == Approx(3));
  CHECK(state.running_variance.span<float>()[0] == Approx(0.9 + 0.4));
  CHECK(state.running_variance.span<float>()[1] == Approx(0.9 + 70));
  CHECK(state.num_batches_tracked.span<std::int64_t>()[0] == 8);
  CHECK(out.data.span<float>()[0] == Approx(-2 / std::sqrt(8.0 / 3 + 1e-5)));
  CHECK(out.data.span<float>()[5] == Approx(1 + 2 * 30 / std::sqrt(1400.0 / 3 + 1e-5)));
  const Variable row{Tensor::from<float>({1, 2}, {1, 2}), nullptr};
  REQUIRE_THROWS_WITH(ops::batch_norm(graph, row, weight, bias, state), contains("one row"));
}

TEST_CASE("gradients of sum agree with finite differences") {
  check_gradients({random_tensor({3, 7}, 0)},
                  [](Graph& graph, const auto& in) { return ops::sum(graph, in[0]); });
}

TEST_CASE("gradients of cross_entropy agree with finite differences") {
  const Tensor targets = indices({2, 3}, 11, 0);
  check_gradients({random_tensor({2, 3, 11}, 0)}, [&](Graph& graph, const auto& in) {
    return ops::cross_entropy(graph, in[0], targets);
  });
}

TEST_CASE("float32 operations agree with float64 ones") {
  const std::vector<Shape> shapes{{2, 9, 16}, {48, 16}, {48},     {16, 16}, {16},
                                  {16},       {16},     {21, 16}, {21}};
  const Tensor targets = indices({2, 9}, 21, 1);
  const auto run = [&](DType dtype) {
    FakeClock clock;
    Graph graph(clock);
    std::vector<Tensor> values;
    for (std::size_t i = 0; i < shapes.size(); ++i)
      values.push_back(random_tensor(shapes[i], i, dtype));
    const auto parameters = parameters_of(values);
    std::vector<Variable> in;
    for (const auto& parameter : parameters) in.push_back(graph.leaf(parameter));
    Variable x = ops::multi_head_attention(graph, in[0], {in[1], in[2], in[3], in[4]}, 2);
    x = ops::layer_norm(graph, ops::add(graph, x, in[0]), in[5], in[6]);
    const Variable loss =
        ops::cross_entropy(graph, ops::linear(graph, ops::relu(graph, x), in[7], in[8]), targets);
    graph.backward(loss);
    std::vector<Tensor> results{loss.data};
    for (const auto& parameter : parameters) results.push_back(parameter->grad);
    return results;
  };
  const auto narrow = run(DType::kFloat32), again = run(DType::kFloat32),
             wide = run(DType::kFloat64);
  for (std::size_t i = 0; i < wide.size(); ++i) {
    CAPTURE(i);
    REQUIRE(same_bits(narrow[i], again[i]));
    for (std::size_t j = 0; j < wide[i].span<double>().size(); ++j) {
      REQUIRE(narrow[i].span<float>()[j] ==
              Approx(wide[i].span<double>()[j]).epsilon(2e-5).margin(2e-6));
    }
  }
}

TEST_CASE("16-bit operations are float32 operations with rounded results") {
  const DType dtype = GENERATE(DType::kFloat16, DType::kBFloat16);
  const auto widen = [](const Tensor& tensor) {
    Tensor wide = Tensor::empty(tensor.shape(), DType::kFloat32, cpu_device());
    cpu_device().cast(wide, tensor);
    return wide;
  };
  const auto narrow = [dtype](const Tensor& tensor) {
    Tensor result = Tensor::empty(tensor.shape(), dtype, cpu_device());
    cpu_device().cast(result, tensor);
    return result;
  };
  const Tensor x = random_tensor({6, 8}, 0, dtype), weight = random_tensor({4, 8}, 1, dtype),
               bias = random_tensor({4}, 2, dtype);
  const Tensor seed = random_tensor({6, 4}, 3, dtype);
  const auto run = [](const std::vector<Tensor>& inputs, const Tensor& gradient) {
    FakeClock clock;
    Graph graph(clock);
    const auto parameters = parameters_of(inputs);
    std::vector<Variable> in;
    for (const auto& parameter : parameters) in.push_back(graph.leaf(parameter));
    const Variable out = ops::linear(graph, in[0], in[1], in[2]);
    graph.backward({out}, {gradient});
    return std::vector<Tensor>{out.data, parameters[0]->grad, parameters[1]->grad,
                               parameters[2]->grad};
  };
  const auto half = run({x, weight, bias}, seed);
  const auto full = run({widen(x), widen(weight), widen(bias)}, widen(seed));
  for (std::size_t i = 0; i < half.size(); ++i) {
    CAPTURE(i);
    REQUIRE(half[i].dtype() == dtype);
    CHECK(same_bits(half[i], narrow(full[i])));
  }
}

TEST_CASE("softmax of float32 is exact to a few units in the last place over its whole range") {
  // One head, width 1: the scores of query q are q * keys, so context = sum(p * v) with v picking
  // one.
  FakeClock clock;
  Graph graph(clock);
  constexpr std::int64_t kCount = 400;
  std::vector<float> qkv;
  for (std::int64_t i = 0; i < kCount; ++i) {
    qkv.push_back(1.0f);
    qkv.push_back(-0.25f * static_cast<float>(i));  // scores from 0 down to -99.75
    qkv.push_back(i == 37 ? 1.0f : 0.0f);
  }
  const Variable out =
      ops::self_attention(graph, {Tensor::from<float>(qkv, {1, kCount, 3}), nullptr}, 1);
  double sum = 0;
  for (std::int64_t i = 0; i < kCount; ++i) sum += std::exp(-0.25 * static_cast<double>(i));
  CHECK(out.data.span<float>()[0] == Approx(std::exp(-0.25 * 37) / sum).epsilon(1e-6));
}

TEST_CASE("cross_entropy stays finite for logits far apart") {
  FakeClock clock;
  Graph graph(clock);
  const auto logits =
      std::make_shared<Parameter>("logits", Tensor::from<float>({1000, -1000, 0}, {1, 3}));
  const Variable loss =
      ops::cross_entropy(graph, graph.leaf(logits), Tensor::from<std::int64_t>({1}, {1}));
  CHECK(loss.data.span<float>()[0] == 2000.0f);
  graph.backward(loss);
  CHECK(logits->grad.span<float>()[0] == Approx(1));
  CHECK(logits->grad.span<float>()[1] == Approx(-1));
  CHECK(logits->grad.span<float>()[2] == 0.0f);
}

TEST_CASE("gradients become ready in PyTorch's order within an operation") {
  FakeClock clock;
  Graph graph(clock);
  std::vector<std::string> ready;
  const auto parameter = [&](const char* name, const Shape& shape) {
    auto p = std::make_shared<Parameter>(name, random_tensor(shape, 5));
    p->add_gradient_hook(
        [&ready](Parameter& done, BackwardPass&) { ready.push_back(done.name()); });
    return graph.leaf(p);
  };
  const Variable x = ops::embedding(graph, indices({2, 3}, 7, 3), parameter("embed", {7, 4}));
  const Variable attended = ops::multi_head_attention(
      graph, x,
      {parameter("in_proj_weight", {12, 4}), parameter("in_proj_bias", {12}),
       parameter("out_proj.weight", {4, 4}), parameter("out_proj.bias", {4})},
      2);
  const Variable normed =
      ops::layer_norm(graph, ops::add(graph, x, attended), parameter("norm.weight", {4}),
                      parameter("norm.bias", {4}));
  const Variable out =
      ops::linear(graph, normed, parameter("weight", {4, 4}), parameter("bias", {4}));
  graph.backward({out}, {random_tensor(out.data.shape(), 1)});
  CHECK(ready == std::vector<std::string>{"bias", "weight", "norm.weight", "norm.bias",
                                          "out_proj.bias", "out_proj.weight", "in_proj_bias",
                                          "in_proj_weight", "embed"});
}

TEST_CASE("only the gradients that are wanted are computed, and only their products charged") {
  FakeClock clock;
  Graph graph(clock);
  const auto frozen = std::make_shared<Parameter>("frozen", random_tensor({4, 5}, 0), false);
  const auto bias = std::make_shared<Parameter>("bias", random_tensor({4}, 1));
  const Variable x{random_tensor({3, 5}, 2), nullptr};
  const Variable out = ops::linear(graph, x, graph.leaf(frozen), graph.leaf(bias));
  CHECK(clock.flops() == 2 * 3 * 4 * 5);
  graph.backward({out}, {random_tensor({3, 4}, 3)});
  CHECK(clock.flops() == 2 * 3 * 4 * 5);
  CHECK_FALSE(frozen->grad.defined());
  CHECK(bias->grad.defined());
}

TEST_CASE("operations on meta tensors have shapes and flops and nothing else") {
  const auto run = [](Device& device) {
    FakeClock clock;
    Graph graph(clock);
    const auto leaf = [&](const Shape& shape) {
      return graph.leaf(
          std::make_shared<Parameter>("p", Tensor::zeros(shape, DType::kFloat32, device)));
    };
    const auto ids = [&] { return Tensor::zeros({2, 3}, DType::kInt64, device); };
    Variable x = ops::embedding(graph, ids(), leaf({7, 4}));
    x = ops::multi_head_attention(graph, x, {leaf({12, 4}), leaf({12}), leaf({4, 4}), leaf({4})},
                                  2);
    x = ops::relu(graph, ops::layer_norm(graph, x, leaf({4}), leaf({4})));
    const Variable logits = ops::linear(graph, x, leaf({7, 4}), leaf({7}));
    CHECK(logits.data.shape() == Shape{2, 3, 7});
    const Variable loss = ops::cross_entropy(graph, logits, ids());
    CHECK(loss.data.shape() == Shape{});
    graph.backward(loss);
    return clock.flops();
  };
  const double flops = run(meta_device());
  // Products of 6 tokens: in_proj, out_proj, head; attention of 2 sequences. Backward costs twice.
  CHECK(flops == 3 * (2 * 6 * (4 * 12 + 4 * 4 + 4 * 7) + 2 * 2 * (2 * 3 * 3 * 4)));
  CHECK(run(cpu_device()) == flops);
}

TEST_CASE("operations refuse inputs that do not fit and say why") {
  FakeClock clock;
  Graph graph(clock);
  const auto x = [](const Shape& shape) { return Variable{random_tensor(shape, 0), nullptr}; };
  REQUIRE_THROWS_WITH(ops::linear(graph, x({2, 3}), x({4, 5}), {}),
                      contains("float64[2, 3] and float64[4, 5]"));
  REQUIRE_THROWS_WITH(ops::linear(graph, x({2, 5}), x({4, 5}), x({5})), contains("bias[n]"));
  REQUIRE_THROWS_WITH(ops::self_attention(graph, x({1, 2, 12}), 3), contains("3 heads"));
  REQUIRE_THROWS_WITH(ops::add(graph, x({2}), x({3})), contains("one shape"));
  REQUIRE_THROWS_WITH(ops::layer_norm(graph, x({2, 3}), x({2}), x({3})), contains("weight[d]"));
  REQUIRE_THROWS_WITH(ops::embedding(graph, Tensor::from<std::int64_t>({0, 7}, {2}), x({7, 2})),
                      contains("index 7 at position 1"));
  REQUIRE_THROWS_WITH(ops::cross_entropy(graph, x({1, 3}), Tensor::from<std::int64_t>({-1}, {1})),
                      contains("index -1"));
  REQUIRE_THROWS_WITH(ops::cross_entropy(graph, x({2, 3}), Tensor::from<std::int64_t>({1}, {1})),
                      contains("targets"));
}
