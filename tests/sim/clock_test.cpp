#include "gradsync/simulator/kernel/sim_clock.hpp"

#include <limits>

#include "tests/sim/sim_support.hpp"
#include "tests/support/catch.hpp"

using namespace gradsync;
using namespace gradsync::test;

TEST_CASE("a rank's clock runs ahead by its debt and pays it at the network") {
  ClusterSpec cluster = one_switch(2, Seconds(0));
  cluster.compute_rate = {2e9};
  const RunOutcome outcome =
      simulate(cluster, 2, {}, [](const RankWorld& world, RankReport& report) {
        Clock& clock = *world.clock;
        CHECK(clock.now().count() == 0.0);
        clock.advance(Seconds(0.5));
        clock.charge_flops(1e9);
        CHECK(clock.now().count() == 1.0);
        if (report.rank == 1) clock.advance(Seconds(2));
        world.process_group->barrier({})->wait();
        CHECK(clock.now().count() == Approx(3.0));
        clock.advance(Seconds(1));
      });
  // The last second is paid when the rank ends.
  CHECK(outcome.simulated->count() == Approx(4.0));
  CHECK(outcome.reports[0].flight[0].issued.count() == Approx(1.0));
  CHECK(outcome.reports[0].flight[0].completed.count() == Approx(3.0));
}

TEST_CASE("a clock refuses to go back, and flops without a rate") {
  ClusterSpec cluster = one_switch(1);
  cluster.compute_rate = {0};
  simulate(cluster, 1, {}, [](const RankWorld& world, RankReport&) {
    CHECK_THROWS_AS(world.clock->advance(Seconds(-1)), Error);
    CHECK_THROWS_AS(world.clock->advance(Seconds(std::numeric_limits<double>::quiet_NaN())), Error);
    CHECK_THROWS_WITH(world.clock->charge_flops(1), contains("/cluster/compute_rate"));
  });
}
