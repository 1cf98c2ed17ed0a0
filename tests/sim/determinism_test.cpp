// The same simulation gives the same times, to the last bit where SimGrid's clock starts alike.

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/sim_support.hpp"
#include "tests/support/catch.hpp"

using namespace gradsync;
using namespace gradsync::test;

namespace {

/// Ranks of unequal speed on two nodes, several collectives in flight: as many coincidences as
/// possible. Returns the times of everything that happened.
std::vector<double> irregular_job(Fidelity fidelity) {
  ClusterSpec cluster;
  cluster.nodes = 2;
  cluster.gpus_per_node = 3;
  cluster.intra_node = {{10e9}, Seconds(1e-6)};
  cluster.inter_node = {{1e9}, Seconds(7e-6)};
  SimulationOptions options = with_fidelity(fidelity);
  options.communication_threads = 2;
  const RunOutcome outcome =
      simulate(cluster, 6, options, [](const RankRuntime& runtime, RankReport& report) {
        ProcessGroup& group = *runtime.process_group;
        for (int step = 0; step < 3; ++step) {
          std::vector<WorkPtr> works;
          for (int bucket = 0; bucket < 5; ++bucket) {
            runtime.clock->advance(Seconds(1e-4 * (1 + (report.rank * 7 + bucket * 3) % 5)));
            works.push_back(group.allreduce(meta(10'007 * (bucket + 1)), ReduceOp::kSum, {}));
          }
          for (const WorkPtr& work : works) work->wait();
          group.barrier({})->wait();
        }
        group.shutdown();
      });
  std::vector<double> times;
  for (const RankReport& report : outcome.reports) {
    times.push_back(report.ended.count());
    for (const CollectiveRecord& record : report.flight) {
      times.push_back(record.started.count());
      times.push_back(record.completed.count());
    }
  }
  return times;
}

/// irregular_job's times from a child process, whose SimGrid stands where this process's stands
/// now.
std::vector<double> in_child_process(Fidelity fidelity) {
  std::array<int, 2> pipe_ends{};
  if (pipe(pipe_ends.data()) != 0) throw std::runtime_error("pipe failed");
  const pid_t child = fork();
  if (child == 0) {
    const std::vector<double> times = irregular_job(fidelity);
    const std::size_t bytes = times.size() * sizeof(double);
    const ssize_t written = write(pipe_ends[1], times.data(), bytes);
    _exit(written == static_cast<ssize_t>(bytes) ? 0 : 1);
  }
  close(pipe_ends[1]);
  std::vector<double> times;
  double time = 0;
  while (read(pipe_ends[0], &time, sizeof(time)) == static_cast<ssize_t>(sizeof(time))) {
    times.push_back(time);
  }
  close(pipe_ends[0]);
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  return times;
}

}  // namespace

TEST_CASE("a simulation repeats itself to the last bit, and nearly so later in a process") {
  for (const Fidelity fidelity : {Fidelity::kMessage, Fidelity::kFlow}) {
    const std::vector<double> first = in_child_process(fidelity);
    CHECK(first.size() == 6 * (1 + 2 * 18));
    CHECK(first == in_child_process(fidelity));
    CHECK(first == in_child_process(fidelity));
    // SimGrid's clock goes on from simulation to simulation.
    for (int repetition = 0; repetition < 2; ++repetition) {
      const std::vector<double> again = irregular_job(fidelity);
      REQUIRE(again.size() == first.size());
      for (std::size_t i = 0; i < first.size(); ++i) {
        CHECK(again[i] == Approx(first[i]).epsilon(1e-9).margin(1e-10));
      }
    }
  }
}
