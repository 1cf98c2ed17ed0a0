// Counts the CUDA and NCCL calls of one step of a scenario, and measures the host time to make
// them: nccl_step_calls SCENARIO [KEY=VALUE ...]. CUDA and NCCL are no-op fakes (null_gpu.hpp), so
// no GPU is needed; the drivers' own time comes on top. The time is CPU time of the rank's thread,
// so other load does not count.
#include <time.h>

#include <chrono>
#include <iostream>
#include <vector>

#include <fmt/format.h>

#include "bench/null_gpu.hpp"
#include "gradsync/backends/cuda/cuda_clock.hpp"
#include "gradsync/backends/nccl/nccl_process_group.hpp"
#include "gradsync/backends/store/tcp_store_server.hpp"
#include "gradsync/testbed/rank/rank_main.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace {

using namespace gradsync;
using bench::gpu_calls;
using bench::GpuCalls;

double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// State after one step.
struct Mark {
  double seconds;
  GpuCalls calls;
  std::size_t buckets;
};

/// Trains the scenario on one rank and records a mark after each step.
std::vector<Mark> run(const Scenario& scenario) {
  bench::NullCuda cuda;
  bench::NullCublas products;
  bench::NullNccl nccl;
  TcpStoreServer server({.bind_address = "127.0.0.1", .port = 0});
  RankEnvironment environment;
  environment.master_port = server.port();
  environment.agent_store = true;
  const JobStore job = connect_job_store(environment, scenario.timeout);
  CudaDevice device(cuda, products, 0, {});
  CudaClock clock(device, std::chrono::steady_clock::now());
  NcclProcessGroup::Options options;
  options.timeout = scenario.timeout;
  NcclProcessGroup group(environment, job, device, nccl, clock, options);
  RankReport report;
  std::vector<Mark> marks;
  RankRuntime runtime;
  runtime.process_group = &group;
  runtime.clock = &clock;
  runtime.device = &device;
  runtime.on_step = [&](const StepRecord&) {
    marks.push_back({thread_seconds(), gpu_calls, report.buckets.size()});
  };
  run_rank(scenario, runtime, report);
  return marks;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::cerr << "usage: nccl_step_calls SCENARIO [KEY=VALUE ...]\n";
    return 2;
  }
  try {
    std::vector<ScenarioOverride> overrides{
        {"backend", "nccl", ""}, {"ranks", "1", ""}, {"train.hash_every", "0", ""}};
    for (int i = 2; i < count; ++i) {
      const std::string argument = arguments[i];
      const std::size_t equals = argument.find('=');
      overrides.push_back(
          {argument.substr(0, equals), argument.substr(equals + 1), "argument " + argument});
    }
    const std::vector<Mark> marks = run(load_scenario(arguments[1], overrides));
    constexpr std::size_t kFirst = 3;  // the buckets are rebuilt by then
    if (marks.size() < kFirst + 2) {
      std::cerr << "the scenario has too few steps\n";
      return 2;
    }
    const Mark &begin = marks[kFirst - 1], &end = marks[marks.size() - 2];  // the last hashes
    const auto steps = static_cast<std::int64_t>(marks.size() - 1 - kFirst);
    const GpuCalls calls = end.calls - begin.calls;
    const auto each = [&](std::int64_t total) {
      return static_cast<double>(total) / static_cast<double>(steps);
    };
    std::cout << fmt::format(
        "a step ({} of them): {:g} kernels, {:g} products, {:g} memcpys, {:g} memsets, {:g} NCCL "
        "collectives ({} buckets), {:g} event records, {:g} stream waits; {:.0f} us of the host\n",
        steps, each(calls.kernels), each(calls.products), each(calls.copies), each(calls.clears),
        each(calls.collectives), end.buckets, each(calls.records), each(calls.waits),
        (end.seconds - begin.seconds) * 1e6 / static_cast<double>(steps));
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
