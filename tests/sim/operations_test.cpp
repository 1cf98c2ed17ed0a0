// The operations beside those of data parallelism, in the simulator.

#include <exception>
#include <stdexcept>
#include <vector>

#include "gradsync/comm/comm_error.hpp"
#include "tests/sim/sim_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/operations_conformance.hpp"

using namespace gradsync;
using namespace gradsync::test;

namespace {

DeviceWorld world(ClusterSpec::Library library, Fidelity fidelity, Seconds timeout = Seconds(600)) {
  return on_cpu([=](int size, const RankFunction& function) {
    SimulationOptions options = with_fidelity(fidelity);
    options.device = &cpu_device();
    options.timeout = timeout;
    options.stack_bytes = SimulationOptions::kComputeStackBytes;
    ClusterSpec cluster = one_switch(size);
    cluster.library = library;
    std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size));
    const RunOutcome outcome =
        simulate(cluster, size, options, [&](const RankRuntime& runtime, RankReport& report) {
          try {
            function(*runtime.process_group);
            runtime.process_group->shutdown();
          } catch (const std::exception&) {
            errors[static_cast<std::size_t>(report.rank)] = std::current_exception();
            throw;
          }
        });
    for (const std::exception_ptr& error : errors) {
      if (error) std::rethrow_exception(error);
    }
    for (const RankReport& report : outcome.reports) {
      if (report.state != RankState::kFinished) throw std::runtime_error("a rank is stuck");
    }
  });
}

ClusterSpec nccl_nodes(int gpus, int nics) {
  ClusterSpec cluster;
  cluster.library = ClusterSpec::Library::kNccl;
  cluster.generation = ClusterSpec::Generation::kHopper;
  cluster.gpus_per_node = gpus;
  cluster.nics_per_node = nics;
  cluster.intra_node = {{370.8e9}, Seconds(0.3e-6)};
  cluster.inter_node = {{50e9}, Seconds(1e-6)};
  return cluster;
}

ClusterSpec gloo_nodes(int gpus) {
  ClusterSpec cluster;
  cluster.gpus_per_node = gpus;
  cluster.intra_node = {{20e9}, Seconds(2e-6)};
  cluster.inter_node = {{5e9}, Seconds(5e-6)};
  return cluster;
}

/// Seconds of one call of every rank at time 0, without payload. `elements`: of all parts.
double time_of(const ClusterSpec& cluster, int ranks, OpType op, std::int64_t elements,
               Fidelity fidelity) {
  SimulationOptions options = with_fidelity(fidelity);
  options.communication.algorithm = CommunicationSpec::Algorithm::kRing;
  const RunOutcome outcome =
      simulate(cluster, ranks, options, [&](const RankRuntime& runtime, RankReport&) {
        ProcessGroup& group = *runtime.process_group;
        const Tensor part = meta(elements / ranks), whole = meta(elements);
        switch (op) {
          case OpType::kAllreduce:
            return group.allreduce(whole, ReduceOp::kSum, {})->wait();
          case OpType::kBroadcast:
            return group.broadcast(whole, 0, {})->wait();
          case OpType::kReduce:
            return group.reduce(whole, 0, ReduceOp::kSum, {})->wait();
          case OpType::kAllgather:
            return group.allgather(whole, part, {})->wait();
          case OpType::kReduceScatter:
            return group.reduce_scatter(part, whole, ReduceOp::kSum, {})->wait();
          case OpType::kAlltoall:
            return group.alltoall(meta(elements), whole, {})->wait();
          case OpType::kSend:
            if (group.rank() == 0) group.send(whole, ranks - 1, {})->wait();
            if (group.rank() == ranks - 1) group.recv(whole, 0, {})->wait();
            return;
          default:
            return;
        }
      });
  for (const RankReport& report : outcome.reports) REQUIRE(report.error.empty());
  return outcome.simulated->count();
}

}  // namespace

TEST_CASE("sim: the three fidelities agree on the time of every operation") {
  struct Case {
    const char* name;
    ClusterSpec cluster;
    int ranks;
  };
  const std::vector<Case> cases = {{"gloo, one rank a node", gloo_nodes(1), 8},
                                   {"gloo, one node", gloo_nodes(8), 5},
                                   {"nccl, one node", nccl_nodes(8, 8), 8},
                                   {"nccl, two nodes", nccl_nodes(4, 4), 8}};
  for (const Case& c : cases) {
    for (const OpType op : {OpType::kReduce, OpType::kReduceScatter, OpType::kAllgather,
                            OpType::kAlltoall, OpType::kSend}) {
      for (const std::int64_t elements : {80, 80'000, 16'000'000}) {
        const double messages = time_of(c.cluster, c.ranks, op, elements, Fidelity::kMessage);
        const double flows = time_of(c.cluster, c.ranks, op, elements, Fidelity::kFlow);
        const double closed = time_of(c.cluster, c.ranks, op, elements, Fidelity::kAnalytic);
        INFO(c.name << ", " << to_string(op) << " of " << elements << " elements: " << messages
                    << " s by messages, " << flows << " by flows, " << closed << " in closed form");
        CHECK(flows == Approx(messages).epsilon(0.01));
        CHECK(closed == Approx(messages).epsilon(0.01));
      }
    }
  }
}

TEST_CASE("sim: times of the operations beside the formula and beside each other") {
  constexpr std::int64_t kElements = 40'000'000;
  constexpr double kBytes = 4.0 * kElements;
  // Around one switch with latency a and bandwidth b.
  const double a = 4e-6, b = 12.5e9;
  const ClusterSpec gloo = one_switch(5, Seconds(a), b);
  const auto on_gloo = [&](OpType op) { return time_of(gloo, 5, op, kElements, Fidelity::kAuto); };
  CHECK(on_gloo(OpType::kSend) == Approx(a + kBytes / b));
  CHECK(on_gloo(OpType::kAlltoall) == Approx(a + 0.8 * kBytes / b));
  CHECK(on_gloo(OpType::kReduceScatter) == Approx(on_gloo(OpType::kAllreduce)));
  // A ring of n-1 steps, and then four fifths of the data to the root.
  CHECK(on_gloo(OpType::kReduce) == Approx(5 * a + 1.6 * kBytes / b));

  const ClusterSpec nccl = nccl_nodes(4, 4);
  const auto on_nccl = [&](OpType op) { return time_of(nccl, 8, op, kElements, Fidelity::kAuto); };
  CHECK(on_nccl(OpType::kReduce) == Approx(on_nccl(OpType::kBroadcast)).epsilon(0.1));
  CHECK(on_nccl(OpType::kReduceScatter) == Approx(on_nccl(OpType::kAllgather)).epsilon(0.1));
  CHECK(on_nccl(OpType::kReduceScatter) < 0.75 * on_nccl(OpType::kAllreduce));
}

TEST_CASE("sim: NCCL's messages are in stream order, Gloo's pass each other") {
  const auto outcome_of = [](ClusterSpec::Library library) {
    ClusterSpec cluster = one_switch(2);
    cluster.library = library;
    return simulate(cluster, 2, {}, [](const RankRuntime& runtime, RankReport&) {
      ProcessGroup& group = *runtime.process_group;
      const int peer = 1 - group.rank();
      const WorkPtr sent = group.send(meta(1000), peer, {});
      group.recv(meta(1000), peer, {})->wait();
      sent->wait();
    });
  };
  for (const RankReport& report : outcome_of(ClusterSpec::Library::kGloo).reports) {
    CHECK(report.state == RankState::kFinished);
  }
  for (const RankReport& report : outcome_of(ClusterSpec::Library::kNccl).reports) {
    CHECK(report.state != RankState::kFinished);
  }
}

TEST_CASE("sim: reduce, reduce_scatter, alltoall, send and recv keep the contract") {
  const auto library = GENERATE(ClusterSpec::Library::kGloo, ClusterSpec::Library::kNccl);
  const auto fidelity = GENERATE(Fidelity::kMessage, Fidelity::kFlow, Fidelity::kAnalytic);
  check_operations_conformance(world(library, fidelity));
}

TEST_CASE("sim: operations that differ between ranks are desyncs") {
  const auto library = GENERATE(ClusterSpec::Library::kGloo, ClusterSpec::Library::kNccl);
  check_operation_mismatches(world(library, Fidelity::kMessage));
}
