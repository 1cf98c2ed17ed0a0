// Join: ranks with uneven inputs.
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
using gradsync::test::error_of;
using gradsync::test::RankContext;
using gradsync::test::results_of_ranks;
using gradsync::test::trace;
using gradsync::test::TwoParameterDdp;
using gradsync::test::values_of;

TEST_CASE("after a join every rank has the parameters of the rank that trained last") {
  const auto values = results_of_ranks(3, [](RankContext& rank) {
    TwoParameterDdp f(rank);
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
    TwoParameterDdp f(rank);
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
    TwoParameterDdp f(rank);
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
    TwoParameterDdp f(rank, {.find_unused_parameters = true});
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
