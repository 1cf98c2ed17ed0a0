// The simulated process group against the contract that every backend's is held to.

#include <exception>
#include <stdexcept>
#include <vector>

#include "tests/sim/sim_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/process_group_conformance.hpp"

using namespace gradsync;
using namespace gradsync::test;

namespace {

World simulated_world(Fidelity fidelity, int communication_threads = 1) {
  return [=](int size, const RankFunction& function) {
    SimulationOptions options = with_fidelity(fidelity);
    options.device = &cpu_device();
    options.communication_threads = communication_threads;
    options.stack_bytes = SimulationOptions::kComputeStackBytes;
    std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size));
    const RunOutcome outcome = simulate(
        one_switch(size), size, options, [&](const RankRuntime& runtime, RankReport& report) {
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
  };
}

}  // namespace

TEST_CASE("a simulated group by messages meets the contract of process groups") {
  check_process_group_conformance(simulated_world(Fidelity::kMessage));
}

TEST_CASE("a simulated group by flows meets the contract of process groups") {
  check_process_group_conformance(simulated_world(Fidelity::kFlow));
}

TEST_CASE("a simulated group with two communication threads meets the contract") {
  check_process_group_conformance(simulated_world(Fidelity::kMessage, 2));
}

TEST_CASE("different collectives are desyncs in the simulator") {
  check_mismatches_are_desyncs(simulated_world(Fidelity::kMessage));
  check_mismatches_are_desyncs(simulated_world(Fidelity::kFlow));
}
