// The reducer: buckets, their order and launch, gradients as views of them.
#include <utility>
#include <vector>

#include "gradsync/core/error.hpp"
#include "gradsync/ddp/distributed_data_parallel.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/recorded.hpp"
#include "tests/support/scripted_gradients.hpp"
#include "tests/support/small_models.hpp"
#include "tests/support/thread_process_group.hpp"

using namespace gradsync;
using gradsync::test::contains;
using gradsync::test::error_of;
using gradsync::test::four_parameters;
using gradsync::test::LambdaModel;
using gradsync::test::RankContext;
using gradsync::test::results_of_ranks;
using gradsync::test::scripted_loss;
using gradsync::test::trace;
using gradsync::test::TraceEntry;
using gradsync::test::values_of;

namespace {

using Trace = std::vector<TraceEntry>;

}  // namespace

TEST_CASE("the rebuilt buckets are in rank 0's order of arrival on every rank") {
  const auto layouts = results_of_ranks(2, [](RankContext& rank) {
    const auto p = four_parameters();
    LambdaModel model(p, [&](const Batch&, Graph& graph) {
      const auto order = rank.rank == 0 ? std::vector{p[2], p[0], p[3], p[1]}
                                        : std::vector{p[3], p[2], p[1], p[0]};
      return std::vector{scripted_loss(graph, order, static_cast<float>(rank.rank))};
    });
    DistributedDataParallel ddp(model, rank.group, {.bucket_cap_mb = 16.0 / 1024 / 1024});
    std::vector<std::vector<std::int64_t>> result;
    for (int iteration = 0; iteration < 3; ++iteration) {
      rank.graph.backward(ddp.forward(model, Batch{}, rank.graph).front());
      result.push_back({ddp.has_rebuilt_buckets() ? 1 : 0});
    }
    for (const auto& bucket : ddp.buckets()) result.push_back(bucket.parameter_indices);
    result.push_back({static_cast<std::int64_t>(values_of(p[0]->grad)[0] * 10)});
    return result;
  });
  for (const auto& layout : layouts) {
    CHECK(layout == std::vector<std::vector<std::int64_t>>{{0}, {1}, {1}, {2}, {0, 3}, {1}, {15}});
  }
}

TEST_CASE("buckets are launched in their order, each as soon as it is full") {
  // After the rebuild: {d, c}, {b, a}. The second step's gradients come in another order.
  const auto events = results_of_ranks(1, [](RankContext& rank) {
    const auto p = four_parameters();
    std::vector<ParameterPtr> order{p[3], p[2], p[1], p[0]};
    LambdaModel model(
        p, [&](const Batch&, Graph& graph) { return std::vector{scripted_loss(graph, order, 1)}; });
    DistributedDataParallel ddp(model, rank.group, {.bucket_cap_mb = 20.0 / 1024 / 1024});
    rank.graph.backward(ddp.forward(model, Batch{}, rank.graph).front());

    std::vector<std::size_t> launched;  // all-reduces so far, after each gradient
    for (const auto& parameter : p) {
      parameter->add_gradient_hook(
          [&](Parameter&, BackwardPass&) { launched.push_back(trace(rank.group).size()); });
    }
    order = {p[0], p[1], p[3], p[2]};
    const auto outputs = ddp.forward(model, Batch{}, rank.graph);
    const std::size_t before = trace(rank.group).size();
    rank.graph.backward(outputs.front());
    for (std::size_t& count : launched) count -= before;
    return launched;
  });
  // {b, a} is full after two gradients but waits for {d, c}.
  CHECK(events[0] == std::vector<std::size_t>{0, 0, 0, 2});
}

TEST_CASE("with gradient_as_bucket_view gradients are views, and move when buckets are rebuilt") {
  const auto shared = results_of_ranks(2, [](RankContext& rank) {
    const auto p = four_parameters();
    LambdaModel model(p, [&](const Batch&, Graph& graph) {
      return std::vector{scripted_loss(graph, {p[3], p[2], p[1], p[0]}, 1)};
    });
    DistributedDataParallel ddp(
        model, rank.group, {.bucket_cap_mb = 20.0 / 1024 / 1024, .gradient_as_bucket_view = true});
    std::vector<bool> result;
    rank.graph.backward(ddp.forward(model, Batch{}, rank.graph).front());
    const auto neighbours = [&](std::size_t a, std::size_t b) {
      return p[a]->grad.data() + p[a]->grad.nbytes() == p[b]->grad.data();
    };
    result.push_back(neighbours(0, 1) && neighbours(1, 2) && neighbours(2, 3));
    const auto outputs = ddp.forward(model, Batch{}, rank.graph);  // rebuilds
    result.push_back(neighbours(3, 2) && neighbours(1, 0));
    result.push_back(values_of(p[2]->grad) == std::vector<float>(5, 1.0f));
    return result;
  });
  for (const auto& of_rank : shared) CHECK(of_rank == std::vector<bool>{true, true, true});
}

TEST_CASE("a replaced gradient is refused where it should be a bucket view") {
  const auto errors = results_of_ranks(1, [](RankContext& rank) {
    const auto p = four_parameters();
    LambdaModel model(p, [&](const Batch&, Graph& graph) {
      return std::vector{scripted_loss(graph, {p[3], p[2], p[1], p[0]}, 1)};
    });
    DistributedDataParallel ddp(model, rank.group, {.gradient_as_bucket_view = true});
    p[1]->add_gradient_hook([](Parameter& b, BackwardPass&) { b.grad = b.grad.clone(); });
    return error_of([&] { rank.graph.backward(ddp.forward(model, Batch{}, rank.graph).front()); });
  });
  CHECK_THAT(errors[0], contains("parameter b: its gradient is not the view"));
}

TEST_CASE("a forward after an unfinished reduction names the parameters without gradient") {
  const auto errors = results_of_ranks(2, [](RankContext& rank) {
    const auto p = four_parameters();
    LambdaModel model(p, [&](const Batch&, Graph& graph) {
      return std::vector{scripted_loss(graph, {p[3], p[1]}, 1)};
    });
    DistributedDataParallel ddp(model, rank.group);
    ddp.set_position(0, 0);
    rank.graph.backward(ddp.forward(model, Batch{}, rank.graph).front());
    ddp.set_position(0, 1);
    {
      const NoGradGuard no_grad(rank.graph);
      ddp.forward(model, Batch{}, rank.graph);  // not refused: PyTorch does not check there
    }
    return error_of([&] { ddp.forward(model, Batch{}, rank.graph); });
  });
  CHECK_THAT(errors[1],
             contains("rank 1, step 1 (epoch 0): expected to have finished reduction in the prior "
                      "iteration before starting a new one: no gradient arrived for 2 parameters: "
                      "a, c. If they do not take part") &&
                 contains("set find_unused_parameters"));
}

TEST_CASE("a second gradient in one backward is refused, naming the parameter") {
  const auto errors = results_of_ranks(1, [](RankContext& rank) {
    const auto p = four_parameters();
    LambdaModel model(p, [&](const Batch&, Graph& graph) {
      return std::vector{scripted_loss(graph, {p[3], p[2], p[1], p[0]}, 1)};
    });
    DistributedDataParallel ddp(model, rank.group);
    // A hook that runs a backward pass of its own over "d", as a reentrant checkpoint does.
    bool entered = false;
    p[2]->add_gradient_hook([&](Parameter&, BackwardPass&) {
      if (std::exchange(entered, true)) return;
      rank.graph.backward(scripted_loss(rank.graph, {p[3]}, 1));
    });
    return error_of([&] { rank.graph.backward(ddp.forward(model, Batch{}, rank.graph).front()); });
  });
  CHECK_THAT(errors[0], contains("expected to mark a variable ready only once, but parameter d"));
}

TEST_CASE("parameters outlive their DDP: hooks that are left over do nothing") {
  const auto collectives = results_of_ranks(1, [](RankContext& rank) {
    const auto p = four_parameters();
    LambdaModel model(p, [&](const Batch&, Graph& graph) {
      return std::vector{scripted_loss(graph, {p[3], p[2], p[1], p[0]}, 1)};
    });
    Variable loss;
    {
      DistributedDataParallel ddp(model, rank.group);
      loss = ddp.forward(model, Batch{}, rank.graph).front();
    }
    const std::size_t before = trace(rank.group).size();
    rank.graph.backward(loss);
    return trace(rank.group).size() - before;
  });
  CHECK(collectives[0] == 0);
}

TEST_CASE("meta parameters are reduced without bytes, with the same collectives") {
  const auto traces = results_of_ranks(2, [](RankContext& rank) {
    std::vector<ParameterPtr> p;
    for (const char* name : {"a", "b"}) {
      p.push_back(
          std::make_shared<Parameter>(name, Tensor::empty({1000}, DType::kFloat32, meta_device())));
    }
    LambdaModel model(p, [&](const Batch&, Graph& graph) {
      return std::vector{scripted_loss(graph, {p[1], p[0]}, 1)};
    });
    DistributedDataParallel ddp(model, rank.group, {.bucket_cap_mb = 4000.0 / 1024 / 1024});
    for (int iteration = 0; iteration < 2; ++iteration) {
      rank.graph.backward(ddp.forward(model, Batch{}, rank.graph).front());
    }
    return trace(rank.group);
  });
  CHECK(traces[0] == Trace{{"allgather", 1},
                           {"broadcast", 4},
                           {"broadcast", 2000},
                           {"allreduce", 2000},
                           {"broadcast", 3},
                           {"broadcast", 2},
                           {"allreduce", 1000},
                           {"allreduce", 1000}});
  CHECK(traces[1] == traces[0]);
}
