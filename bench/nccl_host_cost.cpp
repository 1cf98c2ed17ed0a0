// The host cost of a synchronized step on the NCCL backend: the engine's hooks and bookkeeping, the
// CUDA device, the process group. CUDA and NCCL are no-op fakes, so this measures our code only;
// the drivers' own time (some microseconds per launch) comes on top.
//
// host_cost/ddp:1 minus host_cost/ddp:0 is the price of synchronization. Goal: at most 5 us per
// bucket and 100 ns per parameter.
#include <memory>

#include <benchmark/benchmark.h>

#include "bench/given_model.hpp"
#include "bench/null_gpu.hpp"
#include "gradsync/backends/cuda/cuda_clock.hpp"
#include "gradsync/backends/nccl/nccl_process_group.hpp"
#include "gradsync/backends/store/tcp_store_server.hpp"
#include "gradsync/ddp/distributed_data_parallel.hpp"

namespace {

using namespace gradsync;
using namespace gradsync::bench;

void host_cost(benchmark::State& state) {
  const std::int64_t parameters = state.range(0), buckets = state.range(1);
  constexpr std::int64_t kElements = 32768;  // larger than the buffers the fake copies
  NullCuda cuda;
  NullCublas products;
  NullNccl nccl;
  TcpStoreServer server({.bind_address = "127.0.0.1", .port = 0});
  RankEnvironment environment;
  environment.master_port = server.port();
  environment.agent_store = true;
  const JobStore job = connect_job_store(environment, Seconds{10});
  CudaDevice device(cuda, products, 0, {});
  CudaClock clock(device, std::chrono::steady_clock::now());
  NcclProcessGroup group(environment, job, device, nccl, clock, {});
  GivenModel model(parameters, kElements, device);
  Graph graph(clock);
  std::unique_ptr<DistributedDataParallel> ddp;
  if (state.range(2) != 0) {
    DdpOptions options;
    options.bucket_cap_mb =
        static_cast<double>(parameters * kElements * 4) / static_cast<double>(buckets) / (1 << 20);
    ddp = std::make_unique<DistributedDataParallel>(model, group, options);
  }
  const auto step = [&] {
    for (const ParameterPtr& parameter : model.parameters()) parameter->grad = {};
    const auto outputs = ddp ? ddp->forward(model, Batch{}, graph) : model.forward({}, graph);
    graph.backward(outputs.front());
    clock.settle_stamps();
  };
  step();
  step();
  const std::int64_t before = gpu_calls.kernels;
  for (auto _ : state) step();
  const auto steps = static_cast<double>(state.iterations());
  state.counters["launches"] = static_cast<double>(gpu_calls.kernels - before) / steps;
  state.counters["buckets"] = ddp ? static_cast<double>(ddp->buckets().size()) : 0;
  state.counters["per_parameter"] =
      benchmark::Counter(steps * static_cast<double>(parameters),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  group.shutdown();
}
BENCHMARK(host_cost)
    ->ArgNames({"parameters", "buckets", "ddp"})
    ->ArgsProduct({{100, 400, 4000}, {1, 20}, {0, 1}})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
