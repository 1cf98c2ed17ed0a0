// Speed and memory use of the simulator; docs/performance.md has the figures.
//
// simulator_speed messages [RANKS]    messages per second, next to a plain S4U ring in the same
// run;
//                                       "all solved": SimGrid also solves flows without contention
//   simulator_speed flow RANKS          three steps of a BERT-large-like model, 14 buckets of 25 MB
//   simulator_speed (flow|message|analytic) RANKS [BUCKETS [STEPS]]
//
// Each measurement runs in its own process, so that none inherits another's memory.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "gradsync/comm/process_group.hpp"
#include "gradsync/simulator/kernel/simgrid_compat.hpp"
#include "gradsync/simulator/simulation.hpp"

namespace {

using namespace gradsync;
namespace s4u = simgrid_compat::s4u;

constexpr double kBandwidth = 12.5e9;
constexpr double kLatency = 2e-6;                    // per cable; a route has two
constexpr unsigned kDefaultStack = 8 * 1024 * 1024;  // SimGrid's default for an actor
constexpr Bytes kBucket = 25'000'000;

/// CPU time: both sides are single-threaded, and other load on the machine does not count.
double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

/// Runs `work` in a child process and returns its result.
double in_child(const std::function<double()>& work) {
  int ends[2];
  if (pipe(ends) != 0) std::exit(2);
  const pid_t child = fork();
  if (child == 0) {
    const double result = work();
    const bool written = write(ends[1], &result, sizeof result) == sizeof result;
    std::_Exit(written ? 0 : 1);
  }
  double result = 0;
  if (read(ends[0], &result, sizeof result) != sizeof result) std::exit(2);
  close(ends[0]);
  close(ends[1]);
  waitpid(child, nullptr, 0);
  return result;
}

/// Enough all-reduces that even small rings run longer than their setup.
int repetitions(int ranks) {
  return std::max(1, 1'000'000 / (ranks * 2 * (ranks - 1)));
}

/// The straightforward implementation: one actor per rank, and per message one put_async, one
/// get_async and two waits. Returns messages per second.
double plain_ring(int ranks) {
  std::vector<std::string> arguments = {"plain", "--log=root.thres:error"};
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) argv.push_back(argument.data());
  auto argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  s4u::Engine engine(&argc, argv.data());
  s4u::Engine::set_config("network/model:CM02");
  s4u::Engine::set_config("network/TCP-gamma:0");
  s4u::Engine::set_config("network/crosstraffic:0");
  const simgrid_compat::Zone star = simgrid_compat::add_star(engine, nullptr, "star");
  std::vector<s4u::Host*> hosts;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string name = fmt::format("r{}", rank);
    s4u::Host* host = simgrid_compat::add_host(star.zone, name, 1e9);
    s4u::SplitDuplexLink* link = simgrid_compat::add_cable(star.zone, name, kBandwidth);
    link->set_latency(kLatency);
    simgrid_compat::plug(star.zone, host, {simgrid_compat::up(link)});
    hosts.push_back(host);
  }
  star.zone->seal();
  const int steps = 2 * (ranks - 1) * repetitions(ranks);
  const auto bytes = static_cast<std::uint64_t>(kBucket / ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    s4u::Host* host = hosts[static_cast<std::size_t>(rank)];
    simgrid_compat::start_actor(fmt::format("a{}", rank), host, kDefaultStack, [=] {
      static int token = 0;
      s4u::Mailbox* out = s4u::Mailbox::by_name(fmt::format("m{}", (rank + 1) % ranks));
      s4u::Mailbox* in = s4u::Mailbox::by_name(fmt::format("m{}", rank));
      for (int step = 0; step < steps; ++step) {
        int* received = nullptr;
        const s4u::CommPtr send = out->put_async(&token, bytes);
        const s4u::CommPtr receive = in->get_async<int>(&received);
        send->wait();
        receive->wait();
      }
    });
  }
  const double begin = cpu_seconds();
  engine.run();
  return static_cast<double>(ranks) * steps / (cpu_seconds() - begin);
}

ClusterSpec one_switch(int ranks) {
  ClusterSpec cluster;
  cluster.nodes = 1;
  cluster.gpus_per_node = ranks;
  cluster.intra_node = {{kBandwidth}, Seconds(kLatency)};
  return cluster;
}

Tensor bucket(Bytes bytes) {
  return Tensor::empty({bytes / 4}, DType::kFloat32, meta_device());
}

/// The same ring in message fidelity: two segments per chunk, as in Gloo.
double our_ring(int ranks, bool solve_all_flows) {
  SimulationOptions options;
  options.solve_all_flows = solve_all_flows;
  options.fidelity = Fidelity::kMessage;
  const double begin = cpu_seconds();
  simulate(one_switch(ranks), ranks, options, [ranks](const RankRuntime& runtime, RankReport&) {
    for (int i = 0; i < repetitions(ranks); ++i) {
      runtime.process_group->allreduce(bucket(kBucket), ReduceOp::kSum, {})->wait();
    }
  });
  return 2.0 * ranks * 2 * (ranks - 1) * repetitions(ranks) / (cpu_seconds() - begin);
}

void messages() {
  fmt::print("messages a second of processor time\n{:>6} {:>12} {:>12} {:>7} {:>12} {:>7}\n",
             "ranks", "plain S4U", "all solved", "ratio", "gradsync", "ratio");
  std::fflush(stdout);
  for (const int ranks : {64, 128, 256, 512, 1024}) {
    double plain = 0, solved = 0, ours = 0;
    for (int repeat = 0; repeat < 3; ++repeat) {  // best of three
      plain = std::max(plain, in_child([&] { return plain_ring(ranks); }));
      solved = std::max(solved, in_child([&] { return our_ring(ranks, true); }));
      ours = std::max(ours, in_child([&] { return our_ring(ranks, false); }));
    }
    fmt::print("{:>6} {:>12.0f} {:>12.0f} {:>7.2f} {:>12.0f} {:>7.2f}\n", ranks, plain, solved,
               solved / plain, ours, ours / plain);
    std::fflush(stdout);
  }
}

void run_steps(Fidelity fidelity, int ranks, int buckets, int steps) {
  SimulationOptions options;
  options.fidelity = fidelity;
  options.ranks_are_alike = true;
  options.stack_bytes = 64 * 1024;
  const RunOutcome outcome =
      simulate(one_switch(ranks), ranks, options, [&](const RankRuntime& runtime, RankReport&) {
        for (int i = 0; i < steps; ++i) {
          std::vector<WorkPtr> works;
          for (int b = 0; b < buckets; ++b) {
            runtime.clock->advance(Seconds(5e-3));
            works.push_back(runtime.process_group->allreduce(bucket(kBucket), ReduceOp::kSum, {}));
          }
          for (const WorkPtr& work : works) work->wait();
        }
        runtime.process_group->shutdown();
      });
  fmt::print(
      "{:>6} ranks {:>3} buckets {:>3} steps: {:>8.3f} s, {:>6.0f} MB, {:>10.3f} ms simulated\n",
      ranks, buckets, steps, outcome.wall.count(),
      static_cast<double>(outcome.peak_rss_bytes) / 1e6, outcome.simulated->count() * 1e3);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 0;
  const int buckets = argc > 3 ? std::atoi(argv[3]) : 14;
  const int steps = argc > 4 ? std::atoi(argv[4]) : 3;
  if (what == "messages" && ranks > 0) {
    fmt::print("{:.0f} messages a second\n", our_ring(ranks, false));
  } else if (what == "messages") {
    messages();
  } else if (what == "flow" && ranks > 0) {
    run_steps(Fidelity::kFlow, ranks, buckets, steps);
  } else if (what == "message" && ranks > 0) {
    run_steps(Fidelity::kMessage, ranks, buckets, steps);
  } else if (what == "analytic" && ranks > 0) {
    run_steps(Fidelity::kAnalytic, ranks, buckets, steps);
  } else {
    fmt::print(stderr,
               "usage: simulator_speed messages [RANKS] | "
               "(flow|message|analytic) RANKS [BUCKETS [STEPS]]\n");
    return 2;
  }
  return 0;
}
