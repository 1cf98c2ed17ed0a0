#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "gradsync/ddp/distributed_data_parallel.hpp"
#include "tests/support/small_models.hpp"
#include "tests/support/thread_process_group.hpp"

namespace gradsync::test {

/// A model of two parameters, "a" {3} and "b" {2}, whose backward reaches b, then a.
struct TwoParameterDdp {
  explicit TwoParameterDdp(RankContext& rank_, const DdpOptions& options = {},
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

}  // namespace gradsync::test
