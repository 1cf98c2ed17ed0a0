#include <cmath>
#include <functional>
#include <string>
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
using gradsync::test::all_gradients;
using gradsync::test::contains;
using gradsync::test::error_of;
using gradsync::test::four_parameters;
using gradsync::test::LambdaModel;
using gradsync::test::local_gradient;
using gradsync::test::make_parameter;
using gradsync::test::RankContext;
using gradsync::test::results_of_ranks;
using gradsync::test::reverse_loss;
using gradsync::test::scripted_loss;
using gradsync::test::TraceEntry;
using gradsync::test::values_of;

namespace {}  // namespace

TEST_CASE("DDP's collectives carry the call site of what led to them") {
  const auto sites = results_of_ranks(2, [&](RankContext& rank) {
    const auto parameters = four_parameters();
    LambdaModel model(parameters, [&](const Batch&, Graph& graph) {
      return std::vector{reverse_loss(graph, parameters, rank.rank, 0)};
    });
    const int made = __LINE__ + 1;
    DistributedDataParallel ddp(model, rank.group, {.find_unused_parameters = true});
    int forward = 0, backward = 0;
    for (int iteration = 0; iteration < 2; ++iteration) {
      forward = __LINE__ + 1;
      const auto outputs = ddp.forward(model, Batch{}, rank.graph);
      backward = __LINE__ + 1;
      rank.graph.backward(outputs.front());
    }
    const auto at = [](int line) { return "ddp_test.cpp:" + std::to_string(line); };
    for (const CollectiveRecord& record : rank.group.flight_recorder().snapshot()) {
      const Phase phase = record.label.phase;
      const int line =
          phase == Phase::kInit ? made : (phase == Phase::kForward ? forward : backward);
      if (record.label.site != at(line)) return record.label.what + " at " + record.label.site;
    }
    return std::string();
  });
  CHECK(sites == std::vector<std::string>(2));
}

TEST_CASE("DDP leaves the mean of all ranks in every gradient, in every iteration") {
  const int world = GENERATE(1, 2, 3, 4, 5);
  const bool view = GENERATE(false, true);
  const bool set_to_none = GENERATE(false, true);
  CAPTURE(world, view, set_to_none);
  constexpr int kIterations = 4;

  const auto gradients = results_of_ranks(world, [&](RankContext& rank) {
    const auto parameters = four_parameters();
    int iteration = 0;
    LambdaModel model(parameters, [&](const Batch&, Graph& graph) {
      return std::vector{reverse_loss(graph, parameters, rank.rank, iteration)};
    });
    // 20 bytes: after the first iteration {d, c}, {b, a}.
    DistributedDataParallel ddp(
        model, rank.group, {.bucket_cap_mb = 20.0 / 1024 / 1024, .gradient_as_bucket_view = view});
    std::vector<std::vector<float>> result;
    for (; iteration < kIterations; ++iteration) {
      for (const auto& parameter : parameters) {
        if (set_to_none) {
          parameter->grad = Tensor();
        } else if (parameter->grad.defined()) {
          cpu_device().fill(parameter->grad, 0);
        }
      }
      rank.graph.backward(ddp.forward(model, Batch{}, rank.graph).front());
      result.push_back(all_gradients(parameters));
    }
    return result;
  });

  for (int iteration = 0; iteration < kIterations; ++iteration) {
    std::size_t flat = 0;
    for (const auto& [parameter, numel] :
         std::vector<std::pair<std::size_t, std::int64_t>>{{0, 3}, {1, 4}, {2, 5}, {3, 1}}) {
      for (std::int64_t element = 0; element < numel; ++element, ++flat) {
        double mean = 0;
        for (int r = 0; r < world; ++r) {
          mean += local_gradient(r, parameter, element, iteration) / static_cast<double>(world);
        }
        const auto row = static_cast<std::size_t>(iteration);
        const float reduced = gradients[0][row][flat];
        CHECK(std::abs(reduced - mean) < 1e-6);
        for (const auto& of_rank : gradients) CHECK(of_rank[row][flat] == reduced);
      }
    }
  }
}

TEST_CASE(
    "a gradient is multiplied by float(1/world) on the copy path and divided on the alias path") {
  // World 5: 1/5 is not exact, so the two differ for some values.
  const auto run = [](bool view) {
    return results_of_ranks(5, [view](RankContext& rank) {
      const std::vector<ParameterPtr> parameters{make_parameter("w", {64})};
      LambdaModel model(parameters, [&](const Batch&, Graph& graph) {
        // Rank 0 alone has a gradient other than 0: the sum is its scaled gradient.
        return std::vector{scripted_loss(graph, {{parameters[0], [&](std::int64_t i) {
                                                    return rank.rank == 0
                                                               ? local_gradient(0, 0, i, 0)
                                                               : 0.0f;
                                                  }}})};
      });
      DistributedDataParallel ddp(model, rank.group, {.gradient_as_bucket_view = view});
      for (int iteration = 0; iteration < 3; ++iteration) {
        if (parameters[0]->grad.defined()) cpu_device().fill(parameters[0]->grad, 0);
        rank.graph.backward(ddp.forward(model, Batch{}, rank.graph).front());
      }
      return values_of(parameters[0]->grad);
    })[0];
  };
  const auto copied = run(false);
  const auto aliased = run(true);
  bool differ = false;
  for (std::int64_t i = 0; i < 64; ++i) {
    const float local = local_gradient(0, 0, i, 0);
    const auto at = static_cast<std::size_t>(i);
    CHECK(copied[at] == local * static_cast<float>(1.0 / 5));
    CHECK(aliased[at] == local / 5.0f);
    differ |= copied[at] != aliased[at];
  }
  CHECK(differ);
}

TEST_CASE("DDP starts every rank from rank 0's parameters and buffers") {
  const auto values = results_of_ranks(3, [](RankContext& rank) {
    const auto own = static_cast<float>(rank.rank + 1);
    const std::vector<ParameterPtr> parameters{make_parameter("w", {2}, own),
                                               make_parameter("frozen", {2}, own * 10, false)};
    const auto buffer =
        std::make_shared<Buffer>(Buffer{"mean", Tensor::from<float>({own * 100}, {1})});
    LambdaModel model(parameters, {}, {buffer});
    const DistributedDataParallel ddp(model, rank.group);
    return std::vector<float>{values_of(parameters[0]->data)[1], values_of(parameters[1]->data)[0],
                              values_of(buffer->data)[0]};
  });
  for (const auto& of_rank : values) CHECK(of_rank == std::vector<float>{1, 10, 100});
}

TEST_CASE("the collectives of DDP are PyTorch's, and labelled with their place in the loop") {
  const auto records = results_of_ranks(2, [](RankContext& rank) {
    const auto parameters = four_parameters();
    LambdaModel model(parameters, [&](const Batch&, Graph& graph) {
      return std::vector{reverse_loss(graph, parameters, rank.rank, 0)};
    });
    DistributedDataParallel ddp(model, rank.group, {.bucket_cap_mb = 20.0 / 1024 / 1024});
    for (int step = 0; step < 2; ++step) {
      ddp.set_position(0, step);
      rank.graph.backward(ddp.forward(model, Batch{}, rank.graph).front());
    }
    return rank.group.flight_recorder().snapshot();
  });
  for (const auto& of_rank : records) {
    struct Expected {
      OpType op;
      std::int64_t elements;
      std::int64_t step;
      std::int32_t bucket;
      const char* what;
    };
    const std::vector<Expected> expected{
        {OpType::kAllgather, 1, -1, -1, "parameter count"},
        {OpType::kBroadcast, 10, -1, -1, "parameter shapes"},
        {OpType::kBroadcast, 13, -1, -1, "parameters"},
        {OpType::kAllreduce, 13, 0, 0, "gradients"},
        {OpType::kBroadcast, 5, 1, -1, "rebuilt bucket indices"},
        {OpType::kBroadcast, 2, 1, -1, "rebuilt bucket sizes"},
        {OpType::kAllreduce, 6, 1, 0, "gradients"},
        {OpType::kAllreduce, 7, 1, 1, "gradients"},
    };
    REQUIRE(of_rank.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(i);
      CHECK(of_rank[i].op == expected[i].op);
      CHECK(of_rank[i].elements == expected[i].elements);
      CHECK(of_rank[i].label.step == expected[i].step);
      CHECK(of_rank[i].label.bucket == expected[i].bucket);
      CHECK(of_rank[i].label.what == expected[i].what);
    }
    CHECK(of_rank[3].label.phase == Phase::kBackward);
    CHECK(of_rank[4].label.phase == Phase::kForward);
    CHECK(*of_rank[3].parameters == std::vector<std::string>{"a", "b", "c", "d"});
    CHECK(*of_rank[6].parameters == std::vector<std::string>{"d", "c"});
    CHECK(*of_rank[7].parameters == std::vector<std::string>{"b", "a"});
  }
}

TEST_CASE("every rank learns which rank has another model, and in what") {
  struct Mistake {
    std::function<std::vector<ParameterPtr>()> parameters;
    const char* message;
  };
  const std::vector<Mistake> mistakes{
      {[] {
         return std::vector{make_parameter("a", {3}), make_parameter("b", {4})};
       },
       "entry 1: rank 0 has parameter b float32 [2, 2], rank 2 has parameter b float32 [4]"},
      {[] {
         return std::vector{make_parameter("a", {3}),
                            make_parameter("b", {2, 2}, 0, true, DType::kFloat64)};
       },
       "rank 0 has parameter b float32 [2, 2], rank 2 has parameter b float64 [2, 2]"},
      {[] {
         return std::vector{make_parameter("a", {3}), make_parameter("c", {2, 2})};
       },
       "rank 0 has parameter b float32 [2, 2], rank 2 has parameter c float32 [2, 2]"},
      {[] { return std::vector{make_parameter("a", {3})}; },
       "rank 0 has parameter b float32 [2, 2], rank 2 has option find_unused_parameters=false"},
      {[] {
         return std::vector{make_parameter("a", {3}), make_parameter("b", {2, 2}, 0, false)};
       },
       "rank 2 has frozen parameter b float32 [2, 2]"},
  };
  for (const Mistake& mistake : mistakes) {
    const auto errors = results_of_ranks(3, [&](RankContext& rank) {
      LambdaModel model(rank.rank == 2
                            ? mistake.parameters()
                            : std::vector{make_parameter("a", {3}), make_parameter("b", {2, 2})});
      try {
        const DistributedDataParallel ddp(model, rank.group);
      } catch (const Error& error) {
        return std::pair(error.code(), std::string(error.what()));
      }
      return std::pair(ErrorCode::kInternal, std::string("no error"));
    });
    for (int rank = 0; rank < 3; ++rank) {
      const auto& [code, message] = errors[static_cast<std::size_t>(rank)];
      CHECK(code == ErrorCode::kDesync);
      CHECK_THAT(message,
                 contains("rank " + std::to_string(rank) + ": DDP expects the same model"));
      CHECK_THAT(message, contains("rank 2 differs from rank 0"));
      CHECK_THAT(message, contains(mistake.message));
    }
  }
}

TEST_CASE("ranks with other options are found as well") {
  const auto errors = results_of_ranks(2, [&](RankContext& rank) {
    LambdaModel model(four_parameters());
    return error_of([&] {
      const DistributedDataParallel ddp(model, rank.group,
                                        {.find_unused_parameters = rank.rank == 1});
    });
  });
  for (const std::string& error : errors) {
    CHECK_THAT(error, contains("rank 0 has option find_unused_parameters=false, rank 1 has option "
                               "find_unused_parameters=true"));
  }
}

TEST_CASE(
    "the five timestamps of an iteration are in order, and communication starts in backward") {
  const auto times = results_of_ranks(1, [](RankContext& rank) {
    const auto p = four_parameters();
    LambdaModel model(p, [&](const Batch&, Graph& graph) {
      rank.clock.advance(Seconds(1));
      return std::vector{scripted_loss(graph, {p[3], p[2], p[1], p[0]}, 1)};
    });
    for (const auto& parameter : p) {
      parameter->add_gradient_hook(
          [&](Parameter&, BackwardPass&) { rank.clock.advance(Seconds(1)); });
    }
    DistributedDataParallel ddp(model, rank.group, {.bucket_cap_mb = 20.0 / 1024 / 1024});
    for (int iteration = 0; iteration < 2; ++iteration) {
      rank.graph.backward(ddp.forward(model, Batch{}, rank.graph).front());
    }
    return ddp.last_iteration();
  });
  // Second iteration: it starts at 5 s; each gradient takes a second and the second one fills the
  // first bucket.
  CHECK(times[0].forward_start.count() == 5);
  CHECK(times[0].backward_compute_start.count() == 6);
  CHECK(times[0].backward_comm_start.count() == 8);
  CHECK(times[0].backward_compute_end.count() == 10);
  CHECK(times[0].backward_comm_end.count() == 10);
}

TEST_CASE("DDP refuses models and options that it has no use for") {
  const auto errors = results_of_ranks(1, [](RankContext& rank) {
    LambdaModel frozen({make_parameter("w", {2}, 0, false)});
    LambdaModel model(four_parameters());
    return std::vector<std::string>{
        error_of([&] { const DistributedDataParallel ddp(frozen, rank.group); }), error_of([&] {
          const DistributedDataParallel ddp(model, rank.group, {.bucket_cap_mb = 0});
        })};
  });
  CHECK_THAT(errors[0][0], contains("doesn't have any parameter that requires a gradient"));
  CHECK_THAT(errors[0][1], contains("bucket_cap_mb must be positive, got 0"));
}
