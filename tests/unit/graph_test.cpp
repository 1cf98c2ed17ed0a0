#include "gradsync/autograd/graph.hpp"

#include <pthread.h>

#include <algorithm>
#include <string>

#include "gradsync/core/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/fake_clock.hpp"

using namespace gradsync;
using gradsync::test::contains;
using gradsync::test::FakeClock;

namespace {

/// An operation that hands its gradient, multiplied by `factor`, to each of its parents, and writes
/// its name into a log.
class Relay final : public Node {
 public:
  Relay(const char* name, std::vector<NodePtr> parents, std::vector<std::string>* log = nullptr,
        double factor = 1)
      : Node(name, std::move(parents)), log_(log), factor_(factor) {}

  std::vector<Tensor> backward(Tensor grad_output, BackwardPass&) override {
    if (log_ != nullptr) log_->emplace_back(name());
    if (factor_ != 1) {
      if (!grad_output.unique()) grad_output = grad_output.clone();
      grad_output.device().scale(grad_output, grad_output, factor_);
    }
    return std::vector<Tensor>(parents().size(), grad_output);
  }

 private:
  std::vector<std::string>* log_;
  double factor_;
};

/// An operation without a use for its inputs.
class Discard final : public Node {
 public:
  explicit Discard(NodePtr parent) : Node("discard", {std::move(parent)}) {}
  std::vector<Tensor> backward(Tensor, BackwardPass&) override { return {Tensor()}; }
};

/// Runs `function` in place of a backward step.
class Run final : public Node {
 public:
  Run(NodePtr parent, std::function<void(BackwardPass&)> function)
      : Node("run", {std::move(parent)}), function_(std::move(function)) {}
  std::vector<Tensor> backward(Tensor grad_output, BackwardPass& pass) override {
    function_(pass);
    return {std::move(grad_output)};
  }

 private:
  std::function<void(BackwardPass&)> function_;
};

Tensor scalar(float value = 0) {
  return Tensor::from<float>({value}, {});
}

ParameterPtr parameter(const std::string& name, bool requires_grad = true) {
  return std::make_shared<Parameter>(name, scalar(), requires_grad);
}

float value_of(const Tensor& tensor) {
  return tensor.span<float>()[0];
}

/// Lets `parameters` write their names into `log` when their gradient is ready.
void log_hooks(const std::vector<ParameterPtr>& parameters, std::vector<std::string>& log) {
  for (const ParameterPtr& p : parameters) {
    p->add_gradient_hook([&log](Parameter& ready, BackwardPass&) { log.push_back(ready.name()); });
  }
}

}  // namespace

TEST_CASE("the node created last runs first, and parameters before every other node") {
  FakeClock clock;
  Graph graph(clock);
  std::vector<std::string> log;
  const auto a = parameter("a"), b = parameter("b"), c = parameter("c");
  log_hooks({a, b, c}, log);
  const auto record = [&](const char* name, std::vector<NodePtr> parents) {
    return graph.record(scalar(), std::make_shared<Relay>(name, std::move(parents), &log)).node;
  };
  // Two branches that are interleaved in time: first, second, third, fourth.
  const NodePtr first = record("first", {graph.leaf(a).node});
  const NodePtr second = record("second", {graph.leaf(b).node});
  const NodePtr third = record("third", {first, graph.leaf(c).node});
  const NodePtr fourth = record("fourth", {second});
  const NodePtr loss = record("loss", {fourth, third});
  graph.backward({scalar(), loss});
  CHECK(log ==
        std::vector<std::string>{"loss", "fourth", "third", "c", "second", "b", "first", "a"});
}

TEST_CASE("parameters of one node run in the order of its inputs") {
  FakeClock clock;
  Graph graph(clock);
  std::vector<std::string> log;
  std::vector<ParameterPtr> parameters;
  std::vector<NodePtr> leaves;
  std::vector<std::string> names;
  for (int i = 0; i < 9; ++i) {
    names.push_back("p" + std::to_string(i));
    parameters.push_back(parameter(names.back()));
    leaves.push_back(graph.leaf(parameters.back()).node);
  }
  log_hooks(parameters, log);
  graph.backward(graph.record(scalar(), std::make_shared<Relay>("loss", leaves)));
  CHECK(log == names);
}

TEST_CASE("gradients of several consumers are added and shared tensors are left alone") {
  FakeClock clock;
  Graph graph(clock);
  const auto a = parameter("a"), b = parameter("b");
  const Variable x =
      graph.record(scalar(), std::make_shared<Relay>("x", std::vector{graph.leaf(a).node}));
  // Each consumer hands one tensor to both of its inputs: adding in place would change the other's.
  const auto consume = [&](double factor) {
    return graph
        .record(scalar(), std::make_shared<Relay>(
                              "consumer", std::vector{x.node, graph.leaf(b).node}, nullptr, factor))
        .node;
  };
  const Variable loss = graph.record(
      scalar(), std::make_shared<Relay>("loss", std::vector{consume(2), consume(3), consume(4)}));
  graph.backward(loss);
  CHECK(value_of(a->grad) == 9);
  CHECK(value_of(b->grad) == 9);
  CHECK_FALSE(a->grad.aliases(b->grad));
  graph.backward(loss);  // the tape is still there, and gradients accumulate
  CHECK(value_of(a->grad) == 18);
  CHECK(value_of(b->grad) == 18);
}

TEST_CASE("a parameter that is used once but handed a shared gradient gets a copy") {
  FakeClock clock;
  Graph graph(clock);
  const auto a = parameter("a"), b = parameter("b");
  graph.backward(graph.record(
      scalar(),
      std::make_shared<Relay>("loss", std::vector{graph.leaf(a).node, graph.leaf(b).node})));
  CHECK_FALSE(a->grad.aliases(b->grad));
  CHECK(value_of(a->grad) == 1);
}

TEST_CASE("a node without a use for its input leaves the gradient undefined and the hook fires") {
  FakeClock clock;
  Graph graph(clock);
  const auto a = parameter("a");
  std::vector<std::string> log;
  log_hooks({a}, log);
  graph.backward(graph.record(scalar(), std::make_shared<Discard>(graph.leaf(a).node)));
  CHECK_FALSE(a->grad.defined());
  CHECK(log == std::vector<std::string>{"a"});
}

TEST_CASE("the same parameter is one leaf, and one that needs no gradient is none") {
  FakeClock clock;
  Graph graph(clock);
  const auto a = parameter("a"), frozen = parameter("frozen", false);
  CHECK(graph.leaf(a).node == graph.leaf(a).node);
  CHECK(graph.leaf(frozen).node == nullptr);
  const Variable constant =
      graph.record(scalar(), std::make_shared<Relay>("x", std::vector{graph.leaf(frozen).node}));
  CHECK(constant.node == nullptr);
  REQUIRE_THROWS_WITH(graph.backward(constant), contains("no parameter"));
}

TEST_CASE("nothing is recorded while gradients are off") {
  FakeClock clock;
  Graph graph(clock);
  const auto a = parameter("a");
  {
    const NoGradGuard guard(graph);
    CHECK(graph.record(scalar(), std::make_shared<Relay>("x", std::vector{graph.leaf(a).node}))
              .node == nullptr);
  }
  CHECK(graph.grad_enabled());
  CHECK(
      graph.record(scalar(), std::make_shared<Relay>("x", std::vector{graph.leaf(a).node})).node !=
      nullptr);
}

TEST_CASE("several outputs start one pass, one output twice adds its gradients") {
  FakeClock clock;
  Graph graph(clock);
  const auto a = parameter("a");
  std::vector<std::string> log;
  log_hooks({a}, log);
  const Variable x =
      graph.record(scalar(), std::make_shared<Relay>("x", std::vector{graph.leaf(a).node}));
  const Variable y =
      graph.record(scalar(), std::make_shared<Relay>("y", std::vector{x.node}, nullptr, 10));
  graph.backward({x, y, x}, {scalar(1), scalar(2), scalar(4)});
  CHECK(value_of(a->grad) == 25);
  CHECK(log == std::vector<std::string>{"a"});
  REQUIRE_THROWS_WITH(graph.backward({x}, {}), contains("1 outputs and 0 gradients"));
  const Variable vector{Tensor::from<float>({1, 2}, {2}), x.node};
  REQUIRE_THROWS_WITH(graph.backward(vector), contains("[2]"));
}

TEST_CASE("callbacks run after the last node, in order, also those that a callback queues") {
  FakeClock clock;
  Graph graph(clock);
  std::vector<std::string> log;
  const auto a = parameter("a"), b = parameter("b");
  log_hooks({b}, log);
  a->add_gradient_hook([&](Parameter&, BackwardPass& pass) {
    pass.queue_callback([&] { log.emplace_back("one"); });
    pass.queue_callback([&, &p = pass] {
      log.emplace_back("two");
      p.queue_callback([&] { log.emplace_back("three"); });
    });
  });
  graph.backward(graph.record(
      scalar(),
      std::make_shared<Relay>("loss", std::vector{graph.leaf(a).node, graph.leaf(b).node})));
  CHECK(log == std::vector<std::string>{"b", "one", "two", "three"});
}

TEST_CASE("a backward pass may run another one over the same parameters") {
  FakeClock clock;
  Graph graph(clock);
  const auto shared = parameter("shared");
  std::vector<std::string> log;
  const Variable outer = graph.record(
      scalar(), std::make_shared<Relay>("outer", std::vector{graph.leaf(shared).node}));
  // A reentrant checkpoint: recomputes its part of the graph in backward and differentiates it.
  const Variable checkpoint = graph.record(
      scalar(), std::make_shared<Run>(outer.node, [&](BackwardPass& outer_pass) {
        outer_pass.queue_callback([&] { log.emplace_back("outer callback"); });
        const Variable inner = graph.record(
            scalar(), std::make_shared<Run>(graph.leaf(shared).node, [&](BackwardPass& inner_pass) {
              inner_pass.queue_callback([&] { log.emplace_back("inner callback"); });
            }));
        graph.backward(inner);
        log.emplace_back("inner pass done");
      }));
  const Variable loss = graph.record(
      scalar(),
      std::make_shared<Relay>("loss", std::vector{checkpoint.node, graph.leaf(shared).node}));
  graph.backward(loss);
  CHECK(value_of(shared->grad) == 3);
  CHECK(log == std::vector<std::string>{"inner callback", "inner pass done", "outer callback"});
}

TEST_CASE("an exception that is no std::exception leaves the tape usable") {
  struct Killed {};
  FakeClock clock;
  Graph graph(clock);
  const auto a = parameter("a");
  bool kill = true;
  const Variable loss =
      graph.record(scalar(), std::make_shared<Run>(graph.leaf(a).node, [&](BackwardPass&) {
                     if (kill) throw Killed{};
                   }));
  REQUIRE_THROWS_AS(graph.backward(loss), Killed);
  kill = false;
  graph.backward(loss);
  CHECK(value_of(a->grad) == 1);
}

TEST_CASE("reachable parameters are those that the outputs depend on") {
  FakeClock clock;
  Graph graph(clock);
  const auto a = parameter("a"), b = parameter("b"), unused = parameter("unused");
  const Variable x =
      graph.record(scalar(), std::make_shared<Relay>("x", std::vector{graph.leaf(a).node}));
  const Variable y =
      graph.record(scalar(), std::make_shared<Relay>("y", std::vector{x.node, graph.leaf(b).node}));
  graph.leaf(unused);
  auto found = graph.reachable_parameters({y, x, Variable{scalar(), nullptr}});
  std::sort(found.begin(), found.end());
  std::vector<Parameter*> expected{a.get(), b.get()};
  std::sort(expected.begin(), expected.end());
  CHECK(found == expected);
}

TEST_CASE("a gradient of another shape than its parameter is refused with the parameter's name") {
  FakeClock clock;
  Graph graph(clock);
  const auto a = std::make_shared<Parameter>("layer.weight", Tensor::from<float>({1, 2}, {2}));
  const Variable loss =
      graph.record(scalar(), std::make_shared<Relay>("loss", std::vector{graph.leaf(a).node}));
  REQUIRE_THROWS_WITH(graph.backward(loss), contains("layer.weight"));
}

TEST_CASE("a tape of 200,000 nodes is run and released on a stack of 256 KiB") {
  const auto deep = [](void*) -> void* {
    FakeClock clock;
    Graph graph(clock);
    const auto a = parameter("a");
    Variable x = graph.leaf(a);
    for (int i = 0; i < 200'000; ++i) {
      x = graph.record(x.data, std::make_shared<Relay>("link", std::vector{x.node}));
    }
    graph.backward(x);
    const bool right = value_of(a->grad) == 1 && graph.reachable_parameters({x}).size() == 1;
    x = Variable{};
    return right ? nullptr : reinterpret_cast<void*>(1);
  };
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, 256 * 1024) == 0);
  pthread_t thread;
  REQUIRE(pthread_create(&thread, &attributes, deep, nullptr) == 0);
  void* outcome = nullptr;
  REQUIRE(pthread_join(thread, &outcome) == 0);
  CHECK(outcome == nullptr);
  pthread_attr_destroy(&attributes);
}
