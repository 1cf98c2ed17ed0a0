#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gradsync/autograd/ops.hpp"
#include "gradsync/core/error.hpp"
#include "gradsync/ddp/distributed_data_parallel.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/recorded.hpp"
#include "tests/support/small_models.hpp"
#include "tests/support/thread_process_group.hpp"

using namespace gradsync;
using gradsync::test::LambdaModel;
using gradsync::test::make_parameter;
using gradsync::test::RankContext;
using gradsync::test::results_of_ranks;
using gradsync::test::values_of;

namespace {

/// A layer whose backward computes its forward again on a graph of its own and runs backward over
/// it: torch.utils.checkpoint with use_reentrant=True.
class ReentrantCheckpoint final : public Node {
 public:
  ReentrantCheckpoint(Graph& graph, ParameterPtr weight, const Variable& x)
      : Node("ReentrantCheckpoint", {x.node}),
        graph_(graph),
        weight_(std::move(weight)),
        x_(x.data) {}

  std::vector<Tensor> backward(Tensor grad_output, BackwardPass&) override {
    const auto input = std::make_shared<Parameter>("detached input", x_);
    const Variable out = ops::linear(graph_, graph_.leaf(input), graph_.leaf(weight_), {});
    graph_.backward({out}, {grad_output});
    return {input->grad};
  }

 private:
  Graph& graph_;
  ParameterPtr weight_;
  Tensor x_;
};

Variable checkpoint(Graph& graph, const ParameterPtr& weight, const Variable& x) {
  Variable out;
  {
    const NoGradGuard no_grad(graph);
    out = ops::linear(graph, x, {weight->data, nullptr}, {});
  }
  return graph.record(std::move(out.data), std::make_shared<ReentrantCheckpoint>(graph, weight, x));
}

/// The recording's model on one rank: a: Linear(2, 2), b: Linear(2, 1), u: Linear(2, 1), all
/// weights 1, no bias. Inputs are filled with rank + 1; the loss is the sum of the output.
struct Fixture {
  explicit Fixture(RankContext& rank_)
      : rank(rank_),
        x(make_parameter("x", {1, 2}, static_cast<float>(rank_.rank + 1))),
        a(make_parameter("a.weight", {2, 2}, 1)),
        b(make_parameter("b.weight", {1, 2}, 1)),
        u(make_parameter("u.weight", {1, 2}, 1)) {}

  void build(std::vector<ParameterPtr> parameters, LambdaModel::Forward forward,
             const DdpOptions& options = {}) {
    model.emplace(std::move(parameters), std::move(forward));
    ddp.emplace(*model, rank.group, options);
  }
  /// b(a(x))
  void build_chain(const DdpOptions& options = {}) {
    build(
        {a, b}, [this](const Batch&, Graph&) { return std::vector{linear(linear(input(), a), b)}; },
        options);
  }
  /// b(x), or b(x) + u(x)
  void build_branch(const DdpOptions& options) {
    build(
        {b, u},
        [this](const Batch&, Graph& graph) {
          const Variable out = linear(input(), b);
          return std::vector{uses_u ? ops::add(graph, out, linear(input(), u)) : out};
        },
        options);
  }

  Variable input() { return {x->data, nullptr}; }
  Variable linear(const Variable& in, const ParameterPtr& weight) {
    return ops::linear(rank.graph, in, rank.graph.leaf(weight), {});
  }
  Variable forward_with_doubled_input() {
    x = make_parameter("x", {1, 2}, static_cast<float>(2 * (rank.rank + 1)));
    return forward();
  }
  Variable forward() { return ddp->forward(*model, Batch{}, rank.graph).front(); }
  void backward(const Variable& loss) { rank.graph.backward(loss); }
  void step() { backward(forward()); }

  static nlohmann::json gradient(const ParameterPtr& parameter) {
    if (!parameter->grad.defined()) return nullptr;
    return values_of(parameter->grad);
  }
  nlohmann::json gradients() const { return {gradient(a), gradient(b)}; }

  RankContext& rank;
  ParameterPtr x, a, b, u;
  bool uses_u = false;
  std::optional<LambdaModel> model;
  std::optional<DistributedDataParallel> ddp;
};

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "ok";
}

/// Runs `body` on two ranks and compares what it returns with what was recorded as `name`.
void check_case(const std::string& name, const std::function<nlohmann::json(Fixture&)>& body) {
  const auto recorded = gradsync::test::load_recorded("pytorch/ddp_behaviour.json").at("ranks");
  const auto results = results_of_ranks(2, [&](RankContext& rank) {
    Fixture fixture(rank);
    return body(fixture);
  });
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CAPTURE(name, rank);
    const auto& expected = recorded.at(std::to_string(rank)).at(name);
    CHECK(results[rank] == expected);
  }
}

const DdpOptions kFindUnused{.find_unused_parameters = true};

}  // namespace

TEST_CASE(
    "an unused parameter without find_unused_parameters leaves gradients local, as in PyTorch") {
  check_case("1 unused param, flag off, after backward 1: grads are local (no all-reduce ran)",
             [](Fixture& f) {
               f.build({f.a, f.b, f.u}, [&f](const Batch&, Graph&) {
                 return std::vector{f.linear(f.linear(f.input(), f.a), f.b)};
               });
               f.step();
               auto result = f.gradients();
               result.push_back(Fixture::gradient(f.u));
               return result;
             });
  check_case("1b no_grad forward", [](Fixture& f) -> nlohmann::json {
    f.build({f.a, f.b, f.u}, [&f](const Batch&, Graph&) {
      return std::vector{f.linear(f.linear(f.input(), f.a), f.b)};
    });
    f.step();
    const NoGradGuard no_grad(f.rank.graph);
    return error_of([&] { f.forward(); });
  });
}

TEST_CASE("several forwards and backwards give PyTorch's gradients") {
  check_case("2 backward twice retain_graph", [](Fixture& f) {
    f.build_chain();
    const Variable loss = f.forward();
    f.backward(loss);
    const auto first = f.gradients();
    f.backward(loss);
    return nlohmann::json{"ok", first, f.gradients()};
  });
  check_case("3 fwd,fwd,bwd,bwd", [](Fixture& f) {
    f.build_chain();
    const Variable one = f.forward();
    const Variable two = f.forward_with_doubled_input();
    f.backward(one);
    const auto first = f.gradients();
    f.backward(two);
    return nlohmann::json{"ok", first, f.gradients()};
  });
  check_case("4 fwd,fwd,one bwd", [](Fixture& f) {
    f.build_chain();
    const Variable one = f.forward();
    const Variable two = f.forward_with_doubled_input();
    f.backward(ops::add(f.rank.graph, one, two));
    return f.gradients();
  });
}

TEST_CASE("what counts for no_sync is where forward runs, as in PyTorch") {
  check_case("5 no_sync around backward only (still synced)", [](Fixture& f) {
    f.build_chain();
    const Variable loss = f.forward();
    const NoSyncGuard no_sync(*f.ddp);
    f.backward(loss);
    return f.gradients();
  });
  check_case("6 no_sync around forward only (not synced)", [](Fixture& f) {
    f.build_chain();
    Variable loss;
    {
      const NoSyncGuard no_sync(*f.ddp);
      loss = f.forward();
    }
    f.backward(loss);
    return f.gradients();
  });
}

TEST_CASE("accumulated gradients are reduced as in PyTorch, with no_sync and without") {
  check_case("7 no_sync step then sync step: mean over ranks of accumulated sums", [](Fixture& f) {
    f.build_chain();
    {
      const NoSyncGuard no_sync(*f.ddp);
      f.step();
    }
    f.step();
    return f.gradients();
  });
  const auto twice = [](Fixture& f, bool view) {
    f.build_chain({.gradient_as_bucket_view = view});
    f.step();
    f.step();
    return f.gradients();
  };
  check_case(
      "8 accumulate without no_sync: second all-reduce averages (already averaged g1 + local g2)",
      [&](Fixture& f) { return twice(f, false); });
  check_case("8b same, gradient_as_bucket_view", [&](Fixture& f) { return twice(f, true); });
}

TEST_CASE("reentrant checkpoints give PyTorch's gradients and errors") {
  const auto build = [](Fixture& f, int checkpoints, const DdpOptions& options) {
    f.build(
        {f.a, f.b},
        [&f, checkpoints](const Batch&, Graph& graph) {
          Variable h = graph.leaf(f.x);  // reentrant checkpoints need an input with a gradient
          for (int i = 0; i < checkpoints; ++i) h = checkpoint(graph, f.a, h);
          return std::vector{f.linear(h, f.b)};
        },
        options);
  };
  check_case("9 ckpt variant 1 find_unused=False static_graph=False", [&](Fixture& f) {
    build(f, 1, {});
    f.step();
    return nlohmann::json{"ok", f.gradients()};
  });
  check_case("9 ckpt variant 2 find_unused=False static_graph=False", [&](Fixture& f) {
    build(f, 2, {});
    f.step();
    return nlohmann::json{"ok", f.gradients()};
  });
  check_case("9 ckpt variant 2 find_unused=False static_graph=True", [&](Fixture& f) {
    build(f, 2, {.static_graph = true});
    f.step();
    return nlohmann::json{"ok", f.gradients()};
  });
  const auto errors = results_of_ranks(2, [&](RankContext& rank) {
    Fixture f(rank);
    build(f, 1, kFindUnused);
    return error_of([&] { f.step(); });
  });
  CHECK_THAT(errors[0], gradsync::test::contains("ready only once, but parameter a.weight") &&
                            gradsync::test::contains("found unused by find_unused_parameters"));
}

TEST_CASE("unused parameters get and keep the gradients that they have in PyTorch") {
  const bool view = GENERATE(false, true);
  DdpOptions options = kFindUnused;
  options.gradient_as_bucket_view = view;
  check_case("10 used only on rank 0, grad_view=" + std::string(view ? "True" : "False") +
                 ": both get half of rank0 grad",
             [&](Fixture& f) {
               f.build_branch(options);
               f.uses_u = f.rank.rank == 0;
               f.step();
               return nlohmann::json{Fixture::gradient(f.b), Fixture::gradient(f.u)};
             });
  check_case("11 globally unused: grad None", [&](Fixture& f) {
    f.build_branch(options);
    f.step();
    return nlohmann::json{Fixture::gradient(f.b), Fixture::gradient(f.u)};
  });
  check_case("12 globally unused: pre-existing local grad untouched", [](Fixture& f) {
    f.build_branch(kFindUnused);
    f.u->grad = f.u->data.clone();
    cpu_device().fill(f.u->grad, 7 + f.rank.rank);
    f.step();
    return nlohmann::json{Fixture::gradient(f.b), Fixture::gradient(f.u)};
  });
}

TEST_CASE("a parameter used inside no_sync only: dropped before PyTorch 2.4, reduced since") {
  const auto run = [](Fixture& f, PytorchVersion version) {
    DdpOptions options = kFindUnused;
    options.pytorch_version = version;
    f.build_branch(options);
    f.uses_u = true;
    {
      const NoSyncGuard no_sync(*f.ddp);
      f.step();
    }
    f.uses_u = false;
    f.step();
    return nlohmann::json{Fixture::gradient(f.b), Fixture::gradient(f.u)};
  };
  check_case("13 find_unused: u used only inside no_sync (1.13 drops it; fixed by PR 124193)",
             [&](Fixture& f) {
               return run(f, {1, 13});
             });
  const auto fixed = results_of_ranks(2, [&](RankContext& rank) {
    Fixture f(rank);
    return run(f, {});
  });
  for (const auto& of_rank : fixed) {
    CHECK(of_rank == nlohmann::json{std::vector{3.0f, 3.0f}, std::vector{1.5f, 1.5f}});
  }
}

TEST_CASE("a forward without gradients before the first one changes nothing, as in PyTorch") {
  check_case("14 no_grad forward first", [](Fixture& f) {
    f.build_chain();
    {
      const NoGradGuard no_grad(f.rank.graph);
      f.forward();
    }
    f.step();
    return f.gradients();
  });
}

TEST_CASE("parameters and buffers come from rank 0, as in PyTorch") {
  check_case("18 after ctor (weight,running_mean) come from rank 0", [](Fixture& f) {
    const auto own = static_cast<float>(f.rank.rank);
    const auto weight = make_parameter("weight", {2}, own);
    const auto mean =
        std::make_shared<Buffer>(Buffer{"running_mean", Tensor::from<float>({own, own}, {2})});
    LambdaModel model({weight}, {}, {mean});
    const DistributedDataParallel ddp(model, f.rank.group);
    return nlohmann::json{values_of(weight->data), values_of(mean->data)};
  });
}

TEST_CASE("what PyTorch refuses is refused with the words by which its users know it") {
  const auto recorded = gradsync::test::load_recorded("pytorch/ddp_behaviour.json").at("ranks");
  const auto check_error = [&](const std::string& name,
                               const std::function<std::string(Fixture&)>& body) {
    const auto errors = results_of_ranks(2, [&](RankContext& rank) {
      Fixture fixture(rank);
      return body(fixture);
    });
    for (std::size_t rank = 0; rank < 2; ++rank) {
      // Recorded as "RuntimeError: ~words".
      const std::string words = recorded.at(std::to_string(rank)).at(name);
      CHECK_THAT(errors[rank], gradsync::test::contains(words.substr(words.find('~') + 1)));
    }
  };
  check_error("1 second forward", [](Fixture& f) {
    f.build({f.a, f.b, f.u}, [&f](const Batch&, Graph&) {
      return std::vector{f.linear(f.linear(f.input(), f.a), f.b)};
    });
    f.step();
    return error_of([&] { f.forward(); });
  });
  check_error("17 no trainable", [](Fixture& f) {
    return error_of([&] { f.build({make_parameter("w", {1}, 0, false)}, {}); });
  });
  check_error("16 count mismatch", [](Fixture& f) {
    return error_of([&] {
      f.build(f.rank.rank == 0 ? std::vector{f.a, f.b} : std::vector{f.a}, {});
    });
  });
}

TEST_CASE("unlike in PyTorch, rank 0 also learns of a parameter with another shape") {
  const auto errors = results_of_ranks(2, [](RankContext& rank) {
    Fixture f(rank);
    return error_of([&] { f.build({rank.rank == 0 ? f.a : make_parameter("a.weight", {4})}, {}); });
  });
  for (const std::string& error : errors) {
    CHECK_THAT(error,
               gradsync::test::contains("rank 0 has parameter a.weight float32 [2, 2], rank 1 "
                                        "has parameter a.weight float32 [4]"));
  }
}
