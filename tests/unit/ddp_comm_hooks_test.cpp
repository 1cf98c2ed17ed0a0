// Communication hooks: what they send, and the built-in compressions.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gradsync/core/error.hpp"
#include "gradsync/ddp/comm_hooks.hpp"
#include "gradsync/ddp/ddp_logging.hpp"
#include "gradsync/ddp/distributed_data_parallel.hpp"
#include "gradsync/ddp/join.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/recorded.hpp"
#include "tests/support/small_models.hpp"
#include "tests/support/thread_process_group.hpp"
#include "tests/support/two_parameter_ddp.hpp"

using namespace gradsync;
using gradsync::test::contains;
using gradsync::test::error_of;
using gradsync::test::LambdaModel;
using gradsync::test::make_parameter;
using gradsync::test::RankContext;
using gradsync::test::results_of_ranks;
using gradsync::test::scripted_loss;
using gradsync::test::trace;
using gradsync::test::TwoParameterDdp;
using gradsync::test::Use;
using gradsync::test::values_of;

TEST_CASE("a hook of the user's own decides what is sent and what comes back") {
  const bool view = GENERATE(false, true);
  const auto results = results_of_ranks(2, [view](RankContext& rank) {
    TwoParameterDdp f(rank, {.gradient_as_bucket_view = view});
    std::vector<std::string> seen;
    // Sends the negated gradients and returns a tensor of its own.
    f.ddp.register_comm_hook(
        [&seen](GradBucket& bucket, const CommHookContext& context) -> BucketFuture {
          seen.push_back(std::to_string(bucket.index()) + (bucket.is_last() ? " last" : ""));
          for (const auto& parameter : bucket.parameters()) seen.push_back(parameter->name());
          REQUIRE(bucket.gradients().size() == bucket.parameters().size());
          Tensor negated = bucket.buffer().empty_like();
          negated.device().scale(negated, bucket.buffer(), -1);
          WorkPtr work = context.group().allreduce(negated, ReduceOp::kMax,
                                                   context.options("negated gradients"));
          return [work, negated] {
            work->wait();
            return negated;
          };
        },
        "negate");
    f.step();
    return std::tuple(seen, values_of(f.a->grad), values_of(f.b->grad), f.ddp.comm_hook(),
                      f.ddp.logging_data().strs_map.at("comm_hook"));
  });
  for (const auto& [seen, a, b, name, logged] : results) {
    CHECK(seen == std::vector<std::string>{"0 last", "a", "b"});
    CHECK(a == std::vector<float>(3, -1.0f));  // max(-1, -2): nothing was divided
    CHECK(b == std::vector<float>(2, -1.0f));
    CHECK(name == "negate");
    CHECK(logged == "negate");
  }
}

TEST_CASE("hooks are registered once, before the first backward, and must return the bucket") {
  const auto errors = results_of_ranks(1, [](RankContext& rank) {
    std::vector<std::string> result;
    TwoParameterDdp twice(rank);
    twice.ddp.register_comm_hook(allreduce_hook());
    result.push_back(error_of([&] { twice.ddp.register_comm_hook(allreduce_hook()); }));
    TwoParameterDdp late(rank);
    late.step();
    result.push_back(error_of([&] { late.ddp.register_comm_hook(allreduce_hook()); }));
    TwoParameterDdp wrong(rank);
    wrong.ddp.register_comm_hook([](GradBucket& bucket, const CommHookContext&) -> BucketFuture {
      return [part = bucket.gradients()[0]] { return part; };
    });
    result.push_back(error_of([&] { wrong.step(); }));
    result.push_back(error_of([] { make_comm_hook("fp8_compress"); }));
    result.push_back(error_of([] { power_sgd_hook({.start_powerSGD_iter = 1}); }));
    result.push_back(error_of([] { power_sgd_hook({.matrix_approximation_rank = 0}); }));
    return result;
  })[0];
  CHECK_THAT(errors[0], contains("can only be called once"));
  CHECK_THAT(errors[1], contains("before the first backward"));
  CHECK_THAT(errors[2], contains("bucket 0: the communication hook must return one tensor of 5 "
                                 "float32 elements, got 3 of float32"));
  CHECK_THAT(errors[3],
             contains("unknown communication hook \"fp8_compress\"; there are allreduce, "
                      "fp16_compress, bf16_compress"));
  CHECK_THAT(errors[4], contains("start_powerSGD_iter must be at least 2"));
  CHECK_THAT(errors[5], contains("matrix_approximation_rank must be at least 1"));
}

TEST_CASE("bf16 compression rounds to bfloat16 before and after the sum") {
  const auto gradients = results_of_ranks(2, [](RankContext& rank) {
    const std::vector<ParameterPtr> p{make_parameter("w", {2})};
    LambdaModel model(p, [&](const Batch&, Graph& graph) {
      const float value = rank.rank == 0 ? 1.0f : 0.00390625f;  // 2^-8
      return std::vector{scripted_loss(graph, p, value)};
    });
    DistributedDataParallel ddp(model, rank.group);
    ddp.register_comm_hook(bf16_compress_hook());
    rank.graph.backward(ddp.forward(model, Batch{}, rank.graph).front());
    return values_of(p[0]->grad)[0];
  });
  // 0.5 + 2^-9 is half way between bfloat16's 0.5 and 0.5 + 2^-8, and goes to the even one.
  CHECK(gradients == std::vector<float>(2, 0.5f));
}

TEST_CASE("batched PowerSGD finds a bucket of rank one exactly") {
  // 16 elements are a 4 x 4 matrix. An outer product is found exactly by rank 1.
  const std::vector<float> left{1, -2, 3, 0.5f};
  const std::vector<float> right{2, 1, -1, 4};
  const auto gradients = results_of_ranks(2, [&](RankContext& rank) {
    const std::vector<ParameterPtr> p{make_parameter("w", {16})};
    LambdaModel model(p, [&](const Batch&, Graph& graph) {
      return std::vector{scripted_loss(graph, {Use{p[0], [&](std::int64_t i) {
                                                     const auto at = static_cast<std::size_t>(i);
                                                     return left[at / 4] * right[at % 4];
                                                   }}})};
    });
    DistributedDataParallel ddp(model, rank.group);
    ddp.register_comm_hook(batched_power_sgd_hook({.start_powerSGD_iter = 2}));
    for (int iteration = 0; iteration < 4; ++iteration) {
      p[0]->grad = Tensor();
      rank.graph.backward(ddp.forward(model, Batch{}, rank.graph).front());
    }
    return std::pair(values_of(p[0]->grad), trace(rank.group));
  });
  for (const auto& [gradient, collectives] : gradients) {
    for (std::size_t i = 0; i < 16; ++i) {
      CHECK(std::abs(gradient[i] - left[i / 4] * right[i % 4]) < 1e-5);
    }
    // The factors are 4 + 4 numbers instead of 16.
    CHECK(collectives.back() == std::pair(std::string("allreduce"), std::int64_t{4}));
  }
}

TEST_CASE("a zero gradient stays zero under PowerSGD") {
  const auto gradients = results_of_ranks(1, [](RankContext& rank) {
    const std::vector<ParameterPtr> p{make_parameter("w", {8, 8})};
    LambdaModel model(
        p, [&](const Batch&, Graph& graph) { return std::vector{scripted_loss(graph, p, 0)}; });
    DistributedDataParallel ddp(model, rank.group);
    ddp.register_comm_hook(power_sgd_hook({.start_powerSGD_iter = 2}));
    for (int iteration = 0; iteration < 3; ++iteration) {
      p[0]->grad = Tensor();
      rank.graph.backward(ddp.forward(model, Batch{}, rank.graph).front());
    }
    return values_of(p[0]->grad);
  });
  CHECK(gradients[0] == std::vector<float>(64, 0.0f));
}

TEST_CASE("gradient_mean average: gradients are sent as they are, and the collective averages") {
  const bool view = GENERATE(false, true);
  struct Result {
    std::vector<float> mean;
    ReduceOp op;
    bool operator==(const Result&) const = default;
  };
  const auto run = [&](GradientMean mean) {
    return results_of_ranks(2, [&](RankContext& rank) {
      DdpOptions options;
      options.gradient_mean = mean;
      options.gradient_as_bucket_view = view;
      TwoParameterDdp f(rank, options);
      f.step();
      return Result{values_of(f.a->grad), rank.group.flight_recorder().snapshot().back().reduce_op};
    });
  };
  const auto predivided = run(GradientMean::kPredivide), averaged = run(GradientMean::kAverage);
  for (std::size_t r = 0; r < 2; ++r) {
    CHECK(averaged[r].mean == predivided[r].mean);  // halves are exact
    CHECK(predivided[r].op == ReduceOp::kSum);
    CHECK(averaged[r].op == ReduceOp::kAverage);
  }
}
