#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gradsync/core/error.hpp"
#include "gradsync/ddp/comm_hooks.hpp"
#include "gradsync/ddp/ddp_logging.hpp"
#include "gradsync/ddp/distributed_data_parallel.hpp"
#include "gradsync/ddp/join.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/recorded.hpp"
#include "tests/support/small_models.hpp"
#include "tests/support/thread_process_group.hpp"

using namespace gradsync;
using gradsync::test::contains;
using gradsync::test::LambdaModel;
using gradsync::test::make_parameter;
using gradsync::test::RankContext;
using gradsync::test::results_of_ranks;
using gradsync::test::scripted_loss;
using gradsync::test::trace;
using gradsync::test::Use;
using gradsync::test::values_of;

namespace {

/// A model of two parameters, "a" {3} and "b" {2}, whose backward reaches b, then a.
struct Fixture {
  explicit Fixture(RankContext& rank_, const DdpOptions& options = {},
                   std::vector<BufferPtr> buffers = {})
      : rank(rank_),
        a(make_parameter("a", {3})),
        b(make_parameter("b", {2})),
        uses{b, a},
        model(
            {a, b},
            [this](const Batch&, Graph& graph) {
              if (in_forward) in_forward();
              return std::vector{scripted_loss(graph, uses, static_cast<float>(rank.rank + 1))};
            },
            std::move(buffers)),
        ddp(model, rank.group, options) {}

  Variable forward() { return ddp.forward(model, Batch{}, rank.graph).front(); }
  void step() { rank.graph.backward(forward()); }

  RankContext& rank;
  ParameterPtr a, b;
  std::vector<ParameterPtr> uses;
  std::function<void()> in_forward;
  LambdaModel model;
  DistributedDataParallel ddp;
};

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

BufferPtr make_buffer(const char* name, float value) {
  return std::make_shared<Buffer>(Buffer{name, Tensor::from<float>({value}, {1})});
}

}  // namespace

TEST_CASE("an exact cap of buckets follows the version of PyTorch") {
  const auto caps = [](std::optional<double> mb, PytorchVersion version) {
    DdpOptions options;
    options.bucket_cap_mb = mb;
    options.pytorch_version = version;
    const BucketCaps result = bucket_caps(options);
    return std::pair(result.first, result.others);
  };
  constexpr Bytes kMiB = 1024 * 1024;
  CHECK(caps({}, {2, 7}) == std::pair(kMiB, 25 * kMiB));
  CHECK(caps(25, {2, 7}) == std::pair(25 * kMiB, 25 * kMiB));
  CHECK(caps(25, {2, 4}) == std::pair(25 * kMiB, 25 * kMiB));
  CHECK(caps(25, {2, 3}) == std::pair(kMiB, 25 * kMiB));
  CHECK(caps(0.5, {1, 13}) == std::pair(kMiB, kMiB / 2));
  for (const double wrong : {0.0, -1.0, std::nan(""), 1e30}) {
    CHECK_THROWS_WITH(caps(wrong, {2, 7}), contains("bucket_cap_mb must be positive"));
  }
}

TEST_CASE("buffers are rank 0's before every forward, and the model's own after it") {
  const auto seen = results_of_ranks(2, [](RankContext& rank) {
    const auto buffer = make_buffer("mean", static_cast<float>(rank.rank));
    Fixture f(rank, {}, {buffer});
    std::vector<float> values;
    f.in_forward = [&] {
      values.push_back(values_of(buffer->data)[0]);
      // As a batch norm does: the statistics of this rank's batch.
      buffer->data.span<float>()[0] += static_cast<float>(rank.rank + 1);
    };
    f.step();
    f.step();
    values.push_back(values_of(buffer->data)[0]);
    return values;
  });
  CHECK(seen[0] == std::vector<float>{0, 1, 2});
  CHECK(seen[1] == std::vector<float>{0, 1, 3});  // 1 + 2: overwritten before the next forward
}

TEST_CASE("a model that replaces its buffers is read anew each time") {
  const auto seen = results_of_ranks(2, [](RankContext& rank) {
    const auto buffer = make_buffer("mean", 0);
    Fixture f(rank, {}, {buffer});
    f.step();
    buffer->data = Tensor::from<float>({static_cast<float>(10 + rank.rank)}, {1});
    f.step();
    return values_of(buffer->data)[0];
  });
  CHECK(seen == std::vector<float>{10, 10});
}

TEST_CASE("without broadcast_buffers ranks keep their own, from the start") {
  const auto seen = results_of_ranks(2, [](RankContext& rank) {
    const auto buffer = make_buffer("mean", static_cast<float>(rank.rank));
    Fixture f(rank, {.broadcast_buffers = false}, {buffer});
    f.step();
    return std::pair(values_of(buffer->data)[0], trace(rank.group).size());
  });
  CHECK(seen[0] == std::pair(0.0f, std::size_t{4}));
  CHECK(seen[1] == std::pair(1.0f, std::size_t{4}));
}

TEST_CASE("ignored parameters and buffers are neither broadcast nor reduced") {
  const auto seen = results_of_ranks(2, [](RankContext& rank) {
    const auto own = static_cast<float>(rank.rank);
    const std::vector<ParameterPtr> p{make_parameter("a", {1}, own), make_parameter("b", {1}, own)};
    const auto buffer = make_buffer("mean", own);
    LambdaModel model(
        p, [&](const Batch&, Graph& graph) { return std::vector{scripted_loss(graph, p, own)}; },
        {buffer});
    DistributedDataParallel ddp(model, rank.group, {.params_and_buffers_to_ignore = {"b", "mean"}});
    rank.graph.backward(ddp.forward(model, Batch{}, rank.graph).front());
    return std::vector<float>{values_of(p[0]->data)[0], values_of(p[1]->data)[0],
                              values_of(buffer->data)[0], values_of(p[0]->grad)[0],
                              values_of(p[1]->grad)[0]};
  });
  CHECK(seen[0] == std::vector<float>{0, 0, 0, 0.5f, 0});
  CHECK(seen[1] == std::vector<float>{0, 1, 1, 0.5f, 1});
}

TEST_CASE("a name to ignore that nothing has is refused") {
  const auto errors = results_of_ranks(1, [](RankContext& rank) {
    return error_of([&] { const Fixture f(rank, {.params_and_buffers_to_ignore = {"module.a"}}); });
  });
  CHECK_THAT(errors[0], contains("to ignore module.a, but the model has no parameter"));
}

TEST_CASE("no_sync guards nest and restore what was before") {
  const auto collectives = results_of_ranks(2, [](RankContext& rank) {
    Fixture f(rank);
    const std::size_t before = trace(rank.group).size();
    const auto launched = [&] { return trace(rank.group).size() - before; };
    std::vector<std::size_t> result;
    {
      const NoSyncGuard outer(f.ddp);
      { const NoSyncGuard inner(f.ddp); }
      f.step();
      result.push_back(launched());
    }
    f.step();
    result.push_back(launched());
    return std::pair(result, values_of(f.a->grad));
  });
  for (const auto& [launched, gradient] : collectives) {
    CHECK(launched == std::vector<std::size_t>{0, 1});
    CHECK(gradient == std::vector<float>(3, 3.0f));  // mean of 1 + 1 and 2 + 2
  }
}

TEST_CASE("clearing a gradient between no_sync and the synchronised backward is refused") {
  const auto errors = results_of_ranks(1, [](RankContext& rank) {
    Fixture f(rank, {.find_unused_parameters = true});
    {
      const NoSyncGuard no_sync(f.ddp);
      f.step();
    }
    f.a->grad = Tensor();
    f.uses = {f.b};
    return error_of([&] { f.step(); });
  });
  CHECK_THAT(errors[0], contains("parameter a was used since the last synchronisation"));
}

TEST_CASE("a graph that changes under static_graph is refused, naming the parameter") {
  const auto errors = results_of_ranks(1, [](RankContext& rank) {
    Fixture more(rank, {.static_graph = true});
    more.uses = {more.b};
    more.step();
    more.uses = {more.b, more.a};
    std::vector<std::string> result{error_of([&] { more.step(); })};

    Fixture fewer(rank, {.static_graph = true});
    fewer.step();
    fewer.uses = {fewer.b};
    fewer.step();
    result.push_back(error_of([&] { fewer.forward(); }));
    return result;
  });
  CHECK_THAT(errors[0][0],
             contains("your training graph has changed in this iteration: parameter a"));
  CHECK_THAT(errors[0][1], contains("no gradient arrived for 1 parameter: a. With static_graph"));
}

TEST_CASE("static_graph reduces a parameter once, however often it is used") {
  const auto gradients = results_of_ranks(2, [](RankContext& rank) {
    Fixture f(rank, {.static_graph = true});
    std::vector<float> result;
    for (int iteration = 0; iteration < 4; ++iteration) {
      f.a->grad = f.b->grad = Tensor();
      f.uses = {f.a, f.b, f.a};
      f.step();
      result.push_back(values_of(f.a->grad)[0]);
    }
    return result;
  });
  for (const auto& of_rank : gradients) CHECK(of_rank == std::vector<float>(4, 3.0f));
}

TEST_CASE("static_graph with no_sync first is as good as without") {
  const auto gradients = results_of_ranks(2, [](RankContext& rank) {
    Fixture f(rank, {.static_graph = true});
    std::vector<float> result;
    for (int iteration = 0; iteration < 3; ++iteration) {
      f.a->grad = f.b->grad = Tensor();
      {
        const NoSyncGuard no_sync(f.ddp);
        f.step();
      }
      f.step();
      result.push_back(values_of(f.a->grad)[0]);
    }
    return result;
  });
  for (const auto& of_rank : gradients) CHECK(of_rank == std::vector<float>(3, 3.0f));
}

TEST_CASE("DDP warns of gradients that silently stay local, once") {
  const auto warnings = results_of_ranks(1, [](RankContext& rank) {
    Fixture f(rank);
    {
      const NoSyncGuard no_sync(f.ddp);
      f.step();  // local as wanted
    }
    const Variable loss = f.forward();
    rank.graph.backward(loss);
    std::vector<std::size_t> counts{f.ddp.warnings().size()};
    rank.graph.backward(loss);
    rank.graph.backward(loss);
    counts.push_back(f.ddp.warnings().size());
    return std::pair(counts, f.ddp.warnings());
  });
  CHECK(warnings[0].first == std::vector<std::size_t>{0, 1});
  CHECK_THAT(warnings[0].second[0], contains("gradients stay local"));
}

TEST_CASE("DDP warns of a backward in no_sync whose forward was outside") {
  const auto warnings = results_of_ranks(1, [](RankContext& rank) {
    Fixture f(rank);
    const Variable loss = f.forward();
    {
      const NoSyncGuard no_sync(f.ddp);
      rank.graph.backward(loss);
    }
    return f.ddp.warnings();
  });
  REQUIRE(warnings[0].size() == 1);
  CHECK_THAT(warnings[0][0], contains("its forward was outside"));
}

TEST_CASE("DDP warns if find_unused_parameters finds nothing") {
  const auto warnings = results_of_ranks(1, [](RankContext& rank) {
    Fixture f(rank, {.find_unused_parameters = true});
    f.step();
    f.step();
    return f.ddp.warnings();
  });
  REQUIRE(warnings[0].size() == 1);
  CHECK_THAT(warnings[0][0], contains("find_unused_parameters is set, but"));
}

TEST_CASE("a hook of the user's own decides what is sent and what comes back") {
  const bool view = GENERATE(false, true);
  const auto results = results_of_ranks(2, [view](RankContext& rank) {
    Fixture f(rank, {.gradient_as_bucket_view = view});
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
    Fixture twice(rank);
    twice.ddp.register_comm_hook(allreduce_hook());
    result.push_back(error_of([&] { twice.ddp.register_comm_hook(allreduce_hook()); }));
    Fixture late(rank);
    late.step();
    result.push_back(error_of([&] { late.ddp.register_comm_hook(allreduce_hook()); }));
    Fixture wrong(rank);
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

TEST_CASE("after a join every rank has the parameters of the rank that trained last") {
  const auto values = results_of_ranks(3, [](RankContext& rank) {
    Fixture f(rank);
    Join join(f.ddp);
    for (int iteration = 0; iteration < (rank.rank == 1 ? 3 : 1); ++iteration) {
      f.step();
      cpu_device().fill(f.a->data, 10 * rank.rank + iteration);
    }
    join.finish();
    return values_of(f.a->data)[0];
  });
  CHECK(values == std::vector<float>(3, 12.0f));
}

TEST_CASE("a join that is not enabled does nothing, and joins can follow each other") {
  const auto collectives = results_of_ranks(2, [](RankContext& rank) {
    Fixture f(rank);
    {
      Join join(f.ddp, {.enable = false});
      f.step();
      join.finish();
    }
    const std::size_t without = trace(rank.group).size();
    for (int epoch = 0; epoch < 2; ++epoch) {
      f.ddp.set_position(epoch, 100 * rank.rank);
      Join join(f.ddp);
      for (int step = 0; step < 1 + rank.rank; ++step) {
        f.ddp.set_position(epoch, 100 * rank.rank + step);  // of no effect: ranks count differently
        f.step();
      }
      join.finish();
    }
    const auto records = rank.group.flight_recorder().snapshot();
    return std::tuple(without, records.back().label.epoch, records.back().label.step);
  });
  // Iterations 0 to 2 were the first epoch's (two with inputs, one that found nobody), 3 to 5 the
  // second's.
  for (const auto& of_rank : collectives) {
    CHECK(of_rank == std::tuple(std::size_t{4}, std::int64_t{1}, std::int64_t{5}));
  }
}

TEST_CASE("ranks that accumulate inside a join need no gradients from those that are done") {
  const auto gradients = results_of_ranks(2, [](RankContext& rank) {
    Fixture f(rank);
    Join join(f.ddp);
    float result = 0;
    for (int iteration = 0; iteration < (rank.rank == 1 ? 2 : 0); ++iteration) {
      f.step();
      f.a->grad = f.b->grad = Tensor();
      {
        const NoSyncGuard no_sync(f.ddp);
        f.step();
      }
      result = values_of(f.a->grad)[0];
    }
    join.finish();
    return result;
  });
  CHECK(gradients[1] == 2.0f);
}

TEST_CASE("a join with unused parameters takes part in their all-reduce as well") {
  const auto gradients = results_of_ranks(2, [](RankContext& rank) {
    Fixture f(rank, {.find_unused_parameters = true});
    f.uses = {f.b};
    Join join(f.ddp);
    for (int iteration = 0; iteration < 2 + rank.rank; ++iteration) {
      f.a->grad = f.b->grad = Tensor();
      f.step();
    }
    join.finish();
    return std::pair(f.a->grad.defined(), values_of(f.b->grad)[0]);
  });
  CHECK(gradients[0] == std::pair(false, 1.5f));
  CHECK(gradients[1] == std::pair(false, 1.0f));  // alone: 2 / 2
}

TEST_CASE("times are in the logging data of the next iteration, in nanoseconds") {
  const auto data = results_of_ranks(1, [](RankContext& rank) {
    Fixture f(rank);
    f.in_forward = [&] { rank.clock.advance(Seconds(1)); };
    f.b->add_gradient_hook([&](Parameter&, BackwardPass&) { rank.clock.advance(Seconds(2)); });
    f.a->add_gradient_hook([&](Parameter&, BackwardPass&) { rank.clock.advance(Seconds(4)); });
    for (int iteration = 0; iteration < 3; ++iteration) f.step();
    return f.ddp.logging_data();
  })[0];
  const auto& ints = data.ints_map;
  constexpr std::int64_t kSecond = 1000000000;
  CHECK(ints.at("iteration") == 2);
  CHECK(ints.at("forward_compute_time") == 1 * kSecond);
  CHECK(ints.at("avg_forward_compute_time") == 1 * kSecond);
  CHECK(ints.at("backward_compute_time") == 6 * kSecond);
  // The one bucket is launched by the last gradient's hook, which runs before the test's own.
  CHECK(ints.at("backward_compute_comm_overlap_time") == 4 * kSecond);
  CHECK(ints.at("backward_comm_time") == 4 * kSecond);
  CHECK(ints.at("forward_compute_time_start") == 7 * kSecond);
}

TEST_CASE("a misuse is in the logging data, with the iteration in which it came") {
  const auto data = results_of_ranks(1, [](RankContext& rank) {
    Fixture f(rank);
    f.step();
    f.uses = {f.b};
    f.step();
    CHECK_THROWS_AS(f.step(), Error);
    return f.ddp.logging_data();
  })[0];
  CHECK(data.ints_map.at("has_error") == 1);
  CHECK(data.ints_map.at("iteration") == 3);
  CHECK_THAT(data.strs_map.at("error"), contains("finished reduction"));
}

TEST_CASE(
    "the first iteration with other unused parameters is in the logging data, as in PyTorch") {
  const auto data = results_of_ranks(1, [](RankContext& rank) {
    Fixture f(rank, {.find_unused_parameters = true});
    std::vector<DdpLoggingData> after;
    for (const bool all : {false, false, true, false}) {
      f.uses = all ? std::vector{f.a, f.b} : std::vector{f.b};
      f.a->grad = f.b->grad = Tensor();
      f.step();
      after.push_back(f.ddp.logging_data());
    }
    return after;
  })[0];
  CHECK_FALSE(data[1].ints_map.contains("can_set_static_graph"));
  CHECK(data[2].ints_map.at("can_set_static_graph") == 0);
  CHECK(data[2].ints_map.at("iteration") == 3);
  CHECK(data[3].ints_map.at("iteration") == 3);  // sampled at the start of the fourth
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
      Fixture f(rank, options);
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
