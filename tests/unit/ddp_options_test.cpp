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
using gradsync::test::values_of;

namespace {

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
    TwoParameterDdp f(rank, {}, {buffer});
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
    TwoParameterDdp f(rank, {}, {buffer});
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
    TwoParameterDdp f(rank, {.broadcast_buffers = false}, {buffer});
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
    return error_of(
        [&] { const TwoParameterDdp f(rank, {.params_and_buffers_to_ignore = {"module.a"}}); });
  });
  CHECK_THAT(errors[0], contains("to ignore module.a, but the model has no parameter"));
}

TEST_CASE("no_sync guards nest and restore what was before") {
  const auto collectives = results_of_ranks(2, [](RankContext& rank) {
    TwoParameterDdp f(rank);
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
    TwoParameterDdp f(rank, {.find_unused_parameters = true});
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
    TwoParameterDdp more(rank, {.static_graph = true});
    more.uses = {more.b};
    more.step();
    more.uses = {more.b, more.a};
    std::vector<std::string> result{error_of([&] { more.step(); })};

    TwoParameterDdp fewer(rank, {.static_graph = true});
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
    TwoParameterDdp f(rank, {.static_graph = true});
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
    TwoParameterDdp f(rank, {.static_graph = true});
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
    TwoParameterDdp f(rank);
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
    TwoParameterDdp f(rank);
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
    TwoParameterDdp f(rank, {.find_unused_parameters = true});
    f.step();
    f.step();
    return f.ddp.warnings();
  });
  REQUIRE(warnings[0].size() == 1);
  CHECK_THAT(warnings[0][0], contains("find_unused_parameters is set, but"));
}

TEST_CASE("times are in the logging data of the next iteration, in nanoseconds") {
  const auto data = results_of_ranks(1, [](RankContext& rank) {
    TwoParameterDdp f(rank);
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
    TwoParameterDdp f(rank);
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
    TwoParameterDdp f(rank, {.find_unused_parameters = true});
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
