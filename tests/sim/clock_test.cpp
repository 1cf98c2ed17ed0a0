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
      simulate(cluster, 2, {}, [](const RankRuntime& runtime, RankReport& report) {
        Clock& clock = *runtime.clock;
        CHECK(clock.now().count() == 0.0);
        clock.advance(Seconds(0.5));
        clock.charge_flops(1e9);
        CHECK(clock.now().count() == 1.0);
        if (report.rank == 1) clock.advance(Seconds(2));
        runtime.process_group->barrier({})->wait();
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
  simulate(cluster, 1, {}, [](const RankRuntime& runtime, RankReport&) {
    CHECK_THROWS_AS(runtime.clock->advance(Seconds(-1)), Error);
    CHECK_THROWS_AS(runtime.clock->advance(Seconds(std::numeric_limits<double>::quiet_NaN())),
                    Error);
    CHECK_THROWS_WITH(runtime.clock->charge_flops(1), contains("/cluster/compute_rate"));
  });
}
