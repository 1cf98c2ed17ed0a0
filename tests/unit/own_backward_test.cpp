// DDP around an autograd that is not the engine's: the same bits and the same collectives as with
// it.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "gradsync/core/error.hpp"
#include "gradsync/ddp/distributed_data_parallel.hpp"
#include "gradsync/ddp/join.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/recorded.hpp"
#include "tests/support/small_models.hpp"
#include "tests/support/thread_process_group.hpp"

using namespace gradsync;
using gradsync::test::contains;
using gradsync::test::make_parameter;
using gradsync::test::RankContext;
using gradsync::test::results_of_ranks;
using gradsync::test::scripted_loss;
using gradsync::test::trace;
using gradsync::test::TraceEntry;
using gradsync::test::Use;
using gradsync::test::values_of;

namespace {

using Values = std::vector<std::vector<float>>;
using Indices = std::vector<std::size_t>;

/// What a training loop leaves behind on one rank.
struct Outcome {
  std::vector<Values> gradients;  // by iteration and parameter
  std::vector<TraceEntry> collectives;
  bool rebuilt = false;
};

std::vector<ParameterPtr> make_parameters() {
  return {make_parameter("a", {3}), make_parameter("frozen", {2}, 1, false),
          make_parameter("b", {2, 2}), make_parameter("c", {5})};
}

float local_gradient(int rank, std::size_t parameter, std::int64_t element, int iteration) {
  return std::sin(1.0f + static_cast<float>(rank) * 7.3f + static_cast<float>(parameter) * 1.7f +
                  static_cast<float>(element) * 0.31f + static_cast<float>(iteration) * 13.1f);
}

/// A backward pass that reaches these parameters, in this order.
using Reached = std::function<Indices(int rank, int iteration)>;

Values gradients_of(const std::vector<ParameterPtr>& parameters) {
  Values values;
  for (const ParameterPtr& parameter : parameters) {
    values.push_back(parameter->grad.defined() ? values_of(parameter->grad) : std::vector<float>{});
  }
  return values;
}

Outcome train_on_tape(RankContext& rank, const DdpOptions& options, const Reached& reached,
                      int iterations) {
  const auto parameters = make_parameters();
  DistributedDataParallel ddp(parameters, {}, rank.group, options);
  Outcome outcome;
  for (int i = 0; i < iterations; ++i) {
    const auto outputs = ddp.forward(rank.graph, [&] {
      std::vector<Use> uses;
      for (const std::size_t p : reached(rank.rank, i)) {
        uses.push_back({parameters[p], [&rank, p, i](std::int64_t element) {
                          return local_gradient(rank.rank, p, element, i);
                        }});
      }
      return std::vector{scripted_loss(rank.graph, uses)};
    });
    rank.graph.backward(outputs.front());
    outcome.gradients.push_back(gradients_of(parameters));
    for (const ParameterPtr& parameter : parameters) parameter->grad = {};
  }
  outcome.collectives = trace(rank.group);
  outcome.rebuilt = ddp.has_rebuilt_buckets();
  return outcome;
}

/// What a program's own backward does: writes the gradient, and says so.
void mark_by_hand(DistributedDataParallel& ddp, Parameter& parameter, std::size_t index, int rank,
                  int iteration) {
  if (!parameter.grad.defined()) parameter.grad = parameter.data.empty_like();
  const auto elements = parameter.grad.span<float>();
  for (std::size_t e = 0; e < elements.size(); ++e) {
    elements[e] = local_gradient(rank, index, static_cast<std::int64_t>(e), iteration);
  }
  ddp.mark_gradient_ready(index);
}

Outcome train_by_hand(RankContext& rank, const DdpOptions& options, const Reached& reached,
                      int iterations) {
  const auto parameters = make_parameters();
  DistributedDataParallel ddp(parameters, {}, rank.group, options);
  Outcome outcome;
  for (int i = 0; i < iterations; ++i) {
    const Indices order = reached(rank.rank, i);
    Indices unused;
    if (options.find_unused_parameters) {
      for (const std::size_t p : {0u, 2u, 3u}) {
        if (std::ranges::find(order, p) == order.end()) unused.push_back(p);
      }
    }
    ddp.prepare_for_forward();
    ddp.prepare_for_backward(unused);
    for (const std::size_t p : order) mark_by_hand(ddp, *parameters[p], p, rank.rank, i);
    ddp.finalize_backward();
    outcome.gradients.push_back(gradients_of(parameters));
    for (const ParameterPtr& parameter : parameters) parameter->grad = {};
  }
  outcome.collectives = trace(rank.group);
  outcome.rebuilt = ddp.has_rebuilt_buckets();
  return outcome;
}

void check_same(const DdpOptions& options, const Reached& reached) {
  constexpr int kRanks = 3;
  constexpr int kIterations = 4;
  const auto expected = results_of_ranks(kRanks, [&](RankContext& rank) {
    return train_on_tape(rank, options, reached, kIterations);
  });
  const auto found = results_of_ranks(kRanks, [&](RankContext& rank) {
    return train_by_hand(rank, options, reached, kIterations);
  });
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    CAPTURE(rank);
    CHECK(found[rank].gradients == expected[rank].gradients);
    CHECK(found[rank].collectives == expected[rank].collectives);
    CHECK(found[rank].rebuilt == expected[rank].rebuilt);
  }
}

Indices backwards(int /*rank*/, int /*iteration*/) {
  return {3, 2, 0};
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kMisuse);
    return error.what();
  }
  return "no error";
}

/// The error of a world of one rank.
std::string error_alone(const std::function<void(DistributedDataParallel&)>& action,
                        const DdpOptions& options = {}) {
  return results_of_ranks(1,
                          [&](RankContext& rank) {
                            DistributedDataParallel ddp(make_parameters(), {}, rank.group, options);
                            return error_of([&] { action(ddp); });
                          })
      .front();
}

}  // namespace

TEST_CASE("an own backward has the tape's bits and collectives") {
  const DdpOptions small{.bucket_cap_mb = 16.0 / 1024 / 1024};
  check_same({}, backwards);
  check_same(small, backwards);
  check_same({.bucket_cap_mb = small.bucket_cap_mb, .gradient_as_bucket_view = true}, backwards);
  // Another order on each rank: rank 0's decides the buckets.
  check_same(small, [](int rank, int) {
    return rank == 0 ? Indices{0, 3, 2} : rank == 1 ? Indices{2, 3, 0} : Indices{3, 2, 0};
  });
}

TEST_CASE("an own backward names what it does not reach") {
  const DdpOptions options{.bucket_cap_mb = 16.0 / 1024 / 1024, .find_unused_parameters = true};
  check_same(options, [](int rank, int iteration) {
    if (iteration == 1) return Indices{3, 0};  // b on no rank
    return rank == 1 ? Indices{2, 0} : Indices{3, 2, 0};
  });
}

TEST_CASE("an own backward may reach a parameter twice with static_graph") {
  const DdpOptions options{.bucket_cap_mb = 16.0 / 1024 / 1024, .static_graph = true};
  check_same(options, [](int, int) { return Indices{3, 0}; });  // b never
}

TEST_CASE("a rank whose own backward reaches nothing takes part with zeros") {
  const auto means = results_of_ranks(2, [](RankContext& rank) {
    const auto a = make_parameter("a", {2});
    DistributedDataParallel ddp({a}, {}, rank.group, {.find_unused_parameters = true});
    ddp.prepare_for_forward();
    ddp.prepare_for_backward(rank.rank == 0 ? Indices{} : Indices{0});
    if (rank.rank == 0) {
      a->grad = Tensor::from<float>({2, 4}, {2});
      ddp.mark_gradient_ready(0);
    }
    ddp.finalize_backward();
    return values_of(a->grad);
  });
  CHECK(means[0] == std::vector<float>{1, 2});
  CHECK(means[1] == means[0]);
}

TEST_CASE("DDP works in memory that a program lends") {
  struct Left {
    std::vector<float> weights, gradients;
  };
  const auto left = results_of_ranks(2, [](RankContext& rank) {
    const auto value = static_cast<float>(rank.rank + 1);
    Left memory{{value, value}, {}};
    memory.gradients = {10 * value, 20 * value};
    const auto borrow = [](std::vector<float>& values) {
      return Tensor::from_blob(values.data(), {2}, DType::kFloat32, cpu_device());
    };
    const auto weight = std::make_shared<Parameter>("w", borrow(memory.weights));
    DistributedDataParallel ddp({weight}, {}, rank.group);
    ddp.prepare_for_forward();
    ddp.prepare_for_backward();
    weight->grad = borrow(memory.gradients);
    ddp.mark_gradient_ready(0);
    ddp.finalize_backward();
    return memory;
  });
  for (const Left& memory : left) {
    CHECK(memory.weights == std::vector<float>{1, 1});  // rank 0's
    CHECK(memory.gradients == std::vector<float>{15, 30});
  }
}

TEST_CASE("an own backward inside no_sync stays local") {
  const auto sums = results_of_ranks(2, [](RankContext& rank) {
    const auto a = make_parameter("a", {1});
    DistributedDataParallel ddp({a}, {}, rank.group);
    const auto add = [&](float value) {
      const float before = a->grad.defined() ? a->grad.span<float>()[0] : 0;
      a->grad = Tensor::from<float>({before + value}, {1});
      ddp.mark_gradient_ready(0);
    };
    {
      const NoSyncGuard no_sync(ddp);
      ddp.prepare_for_forward();
      ddp.prepare_for_backward();
      add(static_cast<float>(rank.rank));
      ddp.finalize_backward();
    }
    const float local = a->grad.span<float>()[0];
    ddp.prepare_for_forward();
    ddp.prepare_for_backward();
    add(static_cast<float>(10 * rank.rank));
    ddp.finalize_backward();
    return std::vector<float>{local, a->grad.span<float>()[0],
                              static_cast<float>(ddp.warnings().size())};
  });
  CHECK(sums[0] == std::vector<float>{0, 5.5f, 0});
  CHECK(sums[1] == std::vector<float>{1, 5.5f, 0});
}

TEST_CASE("an own backward joins with uneven inputs") {
  const auto means = results_of_ranks(2, [](RankContext& rank) {
    const auto a = make_parameter("a", {1});
    DistributedDataParallel ddp({a}, {}, rank.group);
    Join join(ddp);
    std::vector<float> seen;
    for (int i = 0; i < (rank.rank == 0 ? 1 : 2); ++i) {
      ddp.prepare_for_forward();
      ddp.prepare_for_backward();
      a->grad = Tensor::from<float>({8}, {1});
      ddp.mark_gradient_ready(0);
      ddp.finalize_backward();
      seen.push_back(a->grad.span<float>()[0]);
    }
    join.finish();
    return seen;
  });
  CHECK(means[0] == std::vector<float>{8});
  CHECK(means[1] == std::vector<float>{8, 4});
}

TEST_CASE("an own backward that cannot be right is refused") {
  CHECK_THAT(error_alone([](auto& ddp) { ddp.mark_gradient_ready(0); }),
             contains("rank 0: mark_gradient_ready was called before prepare_for_backward"));
  CHECK_THAT(error_alone([](auto& ddp) { ddp.finalize_backward(); }),
             contains("finalize_backward was called before"));
  CHECK_THAT(error_alone([](auto& ddp) { ddp.prepare_for_backward({0}); }),
             contains("set find_unused_parameters"));
  const auto begin = [](DistributedDataParallel& ddp) {
    ddp.prepare_for_forward();
    ddp.prepare_for_backward();
  };
  CHECK_THAT(error_alone([&](auto& ddp) {
               begin(ddp);
               ddp.mark_gradient_ready(4);
             }),
             contains("no parameter 4: DDP was given 4"));
  CHECK_THAT(error_alone([&](auto& ddp) {
               begin(ddp);
               ddp.mark_gradient_ready(1);
             }),
             contains("parameter 1 is not reduced"));
  CHECK_THAT(error_alone([&](auto& ddp) {
               begin(ddp);
               ddp.mark_gradient_ready(2);
               ddp.mark_gradient_ready(2);
             }),
             contains("parameter b got a second gradient"));
  CHECK_THAT(error_alone([&](auto& ddp) {
               begin(ddp);
               ddp.mark_gradient_ready(2);
               ddp.finalize_backward();
             }),
             contains("gradients of 2 parameters were marked ready: a, c"));
  CHECK_THAT(error_alone([&](auto& ddp) {
               begin(ddp);
               ddp.finalize_backward();
             }),
             contains("3 parameters"));
}
