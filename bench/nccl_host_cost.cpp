// What a synchronized step costs the host on the NCCL backend: the engine's hooks and bookkeeping,
// the CUDA device, the process group. CUDA and NCCL are stand-ins that do nothing, at no cost, so
// this is what is ours; the drivers' own time (some microseconds a launch) comes on top.
//
// host_cost/ddp:1 less host_cost/ddp:0 is the price of synchronization. Goal: at most 5 us a bucket
// and 100 ns a parameter.
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "backends/cuda/cuda_clock.hpp"
#include "backends/nccl/nccl_process_group.hpp"
#include "backends/store/tcp_store_server.hpp"
#include "engine/ddp/distributed_data_parallel.hpp"
#include "tests/fake_cuda/kernel_language.hpp"

namespace gradsync::test {
namespace {

std::int64_t launches = 0;

}  // namespace

// Kernels are counted, not run.
void launch_grid(CudaStream, const void*, dim3, unsigned, std::function<void()>) {
  ++launches;
}
void synchronize_block() {}

}  // namespace gradsync::test

namespace {

using namespace gradsync;

/// Everything is done as soon as it is asked for.
class NullCuda final : public CudaApi {
 public:
  int device_count() override { return 1; }
  std::string no_device_reason() override { return ""; }
  CudaDeviceInfo device_info(int) override { return {"null", "0000:00:00.0", 9, 0, 1, 0}; }
  void set_device(int) override {}
  CudaStream create_stream(bool) override { return handle<CudaStream>(); }
  void destroy_stream(CudaStream) noexcept override {}
  CudaEvent create_event() override { return handle<CudaEvent>(); }
  void destroy_event(CudaEvent) noexcept override {}
  void record(CudaEvent, CudaStream) override {}
  void wait(CudaStream, CudaEvent) override {}
  bool is_done(CudaEvent) override { return true; }
  Seconds elapsed(CudaEvent, CudaEvent) override { return Seconds{0}; }
  void* allocate(Bytes nbytes) override { return std::malloc(static_cast<std::size_t>(nbytes)); }
  void release(void* memory) noexcept override { std::free(memory); }
  void* allocate_pinned(Bytes nbytes) override { return allocate(nbytes); }
  void release_pinned(void* memory) noexcept override { std::free(memory); }
  void copy(void* dst, const void* src, Bytes nbytes, CudaStream) override {
    // Small ones are control data: bucket layouts, counts.
    constexpr Bytes kControl = 64 * 1024;
    if (nbytes <= kControl)
      std::copy_n(static_cast<const char*>(src), nbytes, static_cast<char*>(dst));
  }
  void clear(void*, Bytes, CudaStream) override {}

 private:
  template <typename Handle>
  Handle handle() {
    return reinterpret_cast<Handle>(++next_);
  }
  std::uintptr_t next_ = 0;
};

class NullCublas final : public CublasApi {
 public:
  void multiply(const MatrixProduct&, CudaStream) override {}
};

class NullNccl final : public NcclApi {
 public:
  int version() override { return 22809; }
  std::string last_error(NcclComm) override { return ""; }
  NcclResult get_unique_id(NcclUniqueId&) override { return NcclResult::kSuccess; }
  NcclResult init_rank(NcclComm& comm, int, const NcclUniqueId&, int, const std::string&) override {
    comm = reinterpret_cast<NcclComm>(std::uintptr_t{1});
    return NcclResult::kSuccess;
  }
  NcclResult get_async_error(NcclComm, NcclResult& error) override {
    error = NcclResult::kSuccess;
    return NcclResult::kSuccess;
  }
  NcclResult abort(NcclComm) override { return NcclResult::kSuccess; }
  NcclResult finalize(NcclComm) override { return NcclResult::kSuccess; }
  NcclResult destroy(NcclComm) override { return NcclResult::kSuccess; }
  NcclResult all_reduce(const void*, void*, std::size_t, DType, NcclReduceOp, NcclComm,
                        CudaStream) override {
    return NcclResult::kSuccess;
  }
  NcclResult broadcast(const void*, void*, std::size_t, DType, int, NcclComm, CudaStream) override {
    return NcclResult::kSuccess;
  }
  NcclResult all_gather(const void* send, void* receive, std::size_t count, DType dtype, NcclComm,
                        CudaStream) override {
    std::copy_n(static_cast<const char*>(send), count * element_size(dtype),
                static_cast<char*>(receive));  // of the only rank
    return NcclResult::kSuccess;
  }
  bool can_register() override { return false; }
  NcclResult register_buffer(NcclComm, void*, std::size_t, void*&) override {
    return NcclResult::kInvalidUsage;
  }
  NcclResult deregister_buffer(NcclComm, void*) override { return NcclResult::kInvalidUsage; }
  void* allocate(std::size_t) override { return nullptr; }
  void release(void*) noexcept override {}
};

/// Gives every parameter a gradient that it has at hand, in one node a parameter.
class GivenGradient final : public Node {
 public:
  GivenGradient(NodePtr parameter, NodePtr rest, Tensor gradient)
      : Node("GivenGradient", {std::move(parameter), std::move(rest)}),
        gradient_(std::move(gradient)) {}
  std::vector<Tensor> backward(Tensor grad_output, BackwardPass&) override {
    return {gradient_, std::move(grad_output)};
  }

 private:
  Tensor gradient_;
};

class GivenModel final : public Model {
 public:
  GivenModel(std::int64_t parameters, std::int64_t elements, Device& device)
      : scalar_(Tensor::zeros({}, DType::kFloat32, device)) {
    for (std::int64_t i = 0; i < parameters; ++i) {
      parameters_.push_back(std::make_shared<Parameter>(
          "p" + std::to_string(i), Tensor::zeros({elements}, DType::kFloat32, device)));
    }
  }
  const std::vector<ParameterPtr>& parameters() const override { return parameters_; }
  const std::vector<BufferPtr>& buffers() const override { return buffers_; }
  std::vector<Variable> forward(const Batch&, Graph& graph) override {
    Variable loss{scalar_, nullptr};
    for (const ParameterPtr& parameter : parameters_) {
      loss = graph.record(scalar_, std::make_shared<GivenGradient>(graph.leaf(parameter).node,
                                                                   loss.node, parameter->data));
    }
    return {loss};
  }

 private:
  Tensor scalar_;
  std::vector<ParameterPtr> parameters_;
  std::vector<BufferPtr> buffers_;
};

void host_cost(benchmark::State& state) {
  const std::int64_t parameters = state.range(0), buckets = state.range(1);
  constexpr std::int64_t kElements = 4096;
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
    const auto outputs = ddp ? ddp->forward({}, graph) : model.forward({}, graph);
    graph.backward(outputs.front());
    clock.settle_stamps();
  };
  step();
  step();
  const std::int64_t before = gradsync::test::launches;
  for (auto _ : state) step();
  const auto steps = static_cast<double>(state.iterations());
  state.counters["launches"] = static_cast<double>(gradsync::test::launches - before) / steps;
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
