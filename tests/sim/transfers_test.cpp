#include "gradsync/simulator/kernel/transfers.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "gradsync/core/error.hpp"
#include "gradsync/simulator/platform/platform.hpp"
#include "gradsync/simulator/platform/rank_network.hpp"
#include "gradsync/simulator/simulation.hpp"
#include "tests/support/catch.hpp"

using namespace gradsync;
using test::Approx;

namespace {

struct Message {
  Seconds begin{0};
  int from = 0;
  int to = 0;
  Bytes bytes = 0;
};

ClusterSpec two_by_four() {
  ClusterSpec cluster;
  cluster.nodes = 2;
  cluster.gpus_per_node = 4;
  cluster.nics_per_node = 1;
  cluster.intra_node = {{10e9}, Seconds(1e-6)};
  cluster.inter_node = {{1e9}, Seconds(5e-6)};
  return cluster;
}

struct Outcome {
  std::vector<double> times;  // of arrival, in seconds
  std::int64_t solved = 0;    // flows, by SimGrid
};

/// A message that has arrived is passed on `hops` times, to the rank that
/// is as far from its receiver as that is from its sender.
Outcome arrivals(const std::vector<Message>& messages, int hops, bool solve_all) {
  SimEngine engine;
  const Platform platform(engine, two_by_four(), 8);
  LinkLoads loads(engine);
  Transfers transfers(engine, loads, solve_all);
  RankNetwork network(engine, platform, loads, transfers);
  std::vector<double> times;
  std::function<void(std::size_t, Message, int)> send = [&](std::size_t slot, Message message,
                                                            int left) {
    network.send(message.from, message.to, message.bytes, {[&, slot, message, left] {
                   times[slot] = engine.now().count();
                   if (left == 0) return;
                   Message next = message;
                   next.from = message.to;
                   next.to = (message.to + (message.to - message.from) + 8) % 8;
                   send(slot + 1, next, left - 1);
                 }});
  };
  engine.start_actor("ranks", platform.host(0), SimulationOptions::kReplayStackBytes, [&] {
    engine.in_kernel([&] {
      const auto row = static_cast<std::size_t>(hops) + 1;
      times.resize(messages.size() * row);
      for (std::size_t i = 0; i < messages.size(); ++i) {
        engine.after(messages[i].begin, {[&, i, row] { send(i * row, messages[i], hops); }});
      }
    });
    engine.sleep(Seconds(10));  // SimGrid stops when its last actor has ended
  });
  engine.run([] {});
  return {times, transfers.solved()};
}

std::vector<Message> random_messages(unsigned seed, int count, double span_seconds) {
  std::mt19937 random(seed);
  std::vector<Message> messages;
  for (int i = 0; i < count; ++i) {
    Message message;
    // On a grid, so that some begin at one instant and some when others end.
    message.begin = Seconds(span_seconds * static_cast<double>(random() % 100) / 100);
    message.from = static_cast<int>(random() % 8);
    message.to = (message.from + 1 + static_cast<int>(random() % 7)) % 8;
    message.bytes = 1000 * (1 + static_cast<Bytes>(random() % 100));
    messages.push_back(message);
  }
  return messages;
}

}  // namespace

TEST_CASE("a flow that is alone takes as long as SimGrid's") {
  const std::vector<Message> lone = {
      {Seconds(0), 0, 1, 1'000'000},
      {Seconds(0), 2, 3, 500'000},
      {Seconds(0.01), 0, 4, 1'000'000},
      {Seconds(0.01 + 1e-3), 0, 4, 1'000'000}};  // when the one before it ends
  for (const bool solve_all : {false, true}) {
    const auto [times, solved] = arrivals(lone, 0, solve_all);
    CHECK(solved == (solve_all ? 4 : 0));
    CHECK(times[0] == Approx(1e-4 + 2e-6).epsilon(1e-9));
    CHECK(times[1] == Approx(5e-5 + 2e-6).epsilon(1e-9));
    CHECK(times[2] == Approx(0.01 + 1e-3 + 12e-6).epsilon(1e-9));
    CHECK(times[3] == Approx(0.01 + 2e-3 + 12e-6).epsilon(1e-9));
  }
}

TEST_CASE("a flow that was alone shares its link with one that comes later, from then on") {
  // Both leave node 0 by its adapter, 1 GB/s. The first has half of its bytes to go when the second
  // comes: they share for 1 ms, and the second has the adapter to itself for the rest.
  const std::vector<Message> messages = {{Seconds(0), 0, 4, 1'000'000},
                                         {Seconds(0.0005), 1, 5, 1'000'000}};
  for (const bool solve_all : {false, true}) {
    const auto [times, solved] = arrivals(messages, 0, solve_all);
    CHECK(solved == 2);
    CHECK(times[0] == Approx(1.5e-3 + 12e-6).epsilon(1e-9));
    CHECK(times[1] == Approx(2.0e-3 + 12e-6).epsilon(1e-9));
  }
}

TEST_CASE("flows arrive when they would if all of them were SimGrid's") {
  // From hardly ever two at a time to all at once.
  for (const double span_seconds : {0.2, 0.02, 0.002, 0.0}) {
    for (const int hops : {0, 3}) {
      for (unsigned seed = 0; seed < 5; ++seed) {
        const std::vector<Message> messages = random_messages(seed, 60, span_seconds);
        const std::vector<double> solved = arrivals(messages, hops, true).times;
        const std::vector<double> mixed = arrivals(messages, hops, false).times;
        REQUIRE(mixed.size() == solved.size());
        double worst = 0;
        for (std::size_t i = 0; i < mixed.size(); ++i) {
          worst = std::max(worst, std::abs(mixed[i] - solved[i]));
        }
        // A flow is handed over in whole bytes, of a nanosecond each on an adapter.
        INFO("span " << span_seconds << " s, " << hops << " hops, seed " << seed);
        CHECK(worst < 1e-8);
        CHECK(*std::min_element(mixed.begin(), mixed.end()) > 0);
      }
    }
  }
}

TEST_CASE("a link that changes without notice is an error of the program") {
  SimEngine engine;
  const Platform platform(engine, two_by_four(), 8);
  LinkLoads loads(engine);
  const std::vector<Platform::Link*> route = platform.route(0, 4);
  const LinkLoads::Way way = loads.way(route);
  CHECK(loads.is_plain(way));
  loads.set_share(route.front(), 0.5);  // nothing has passed yet
  loads.add(way, 1);
  CHECK_THROWS_AS(loads.set_share(route.front(), 1), Error);
  loads.always_solve(route.front());
  CHECK_FALSE(loads.is_plain(way));
  CHECK_NOTHROW(loads.set_share(route.front(), 1));
}
