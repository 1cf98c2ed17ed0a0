#include "gradsync/backends/cuda/runtime/cuda_runtime.hpp"

#include <cuda_runtime.h>

#include <array>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"

namespace gradsync {
namespace {

void check(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  throw Error(ErrorCode::kInternal, fmt::format("{}: {} ({})", call, cudaGetErrorString(result),
                                                cudaGetErrorName(result)));
}

class CudaRuntime final : public CudaApi {
 public:
  int device_count() override {
    int count = 0;
    const cudaError_t result = cudaGetDeviceCount(&count);
    if (result == cudaSuccess) return count;
    reason_ = cudaGetErrorString(result);
    static_cast<void>(cudaGetLastError());  // clear the reported error
    return 0;
  }

  std::string no_device_reason() override {
    if (device_count() > 0) return "";
    return reason_.empty() ? "there is no GPU" : reason_;
  }

  CudaDeviceInfo device_info(int device) override {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    std::array<char, 32> pci_id{};
    check(cudaDeviceGetPCIBusId(pci_id.data(), static_cast<int>(pci_id.size()), device),
          "cudaDeviceGetPCIBusId");
    CudaDeviceInfo info;
    info.name = properties.name;
    info.pci_id = pci_id.data();
    info.major = properties.major;
    info.minor = properties.minor;
    info.multiprocessors = properties.multiProcessorCount;
    info.memory = static_cast<Bytes>(properties.totalGlobalMem);
    return info;
  }

  void set_device(int device) override { check(cudaSetDevice(device), "cudaSetDevice"); }

  CudaStream create_stream(bool high_priority) override {
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                       high_priority ? greatest : least),
          "cudaStreamCreateWithPriority");
    return stream;
  }
  void destroy_stream(CudaStream stream) noexcept override {
    static_cast<void>(cudaStreamDestroy(stream));
  }

  CudaEvent create_event() override {
    cudaEvent_t event = nullptr;
    check(cudaEventCreate(&event), "cudaEventCreate");
    return event;
  }
  void destroy_event(CudaEvent event) noexcept override {
    static_cast<void>(cudaEventDestroy(event));
  }
  void record(CudaEvent event, CudaStream stream) override {
    check(cudaEventRecord(event, stream), "cudaEventRecord");
  }
  void wait(CudaStream stream, CudaEvent event) override {
    check(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent");
  }
  bool is_done(CudaEvent event) override {
    const cudaError_t result = cudaEventQuery(event);
    if (result == cudaErrorNotReady) return false;
    check(result, "cudaEventQuery");
    return true;
  }
  Seconds elapsed(CudaEvent begin, CudaEvent end) override {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
    return Seconds(static_cast<double>(milliseconds) / 1000);
  }

  void* allocate(Bytes nbytes) override {
    void* memory = nullptr;
    return allocated(cudaMalloc(&memory, static_cast<std::size_t>(nbytes)), memory, "cudaMalloc");
  }
  void release(void* memory) noexcept override { static_cast<void>(cudaFree(memory)); }
  void* allocate_pinned(Bytes nbytes) override {
    void* memory = nullptr;
    return allocated(
        cudaHostAlloc(&memory, static_cast<std::size_t>(nbytes), cudaHostAllocPortable), memory,
        "cudaHostAlloc");
  }
  void release_pinned(void* memory) noexcept override { static_cast<void>(cudaFreeHost(memory)); }

  void copy(void* dst, const void* src, Bytes nbytes, CudaStream stream) override {
    check(cudaMemcpyAsync(dst, src, static_cast<std::size_t>(nbytes), cudaMemcpyDefault, stream),
          "cudaMemcpyAsync");
  }
  void clear(void* dst, Bytes nbytes, CudaStream stream) override {
    check(cudaMemsetAsync(dst, 0, static_cast<std::size_t>(nbytes), stream), "cudaMemsetAsync");
  }

 private:
  static void* allocated(cudaError_t result, void* memory, const char* call) {
    if (result == cudaErrorMemoryAllocation) {
      static_cast<void>(cudaGetLastError());  // clear it; the caller decides what it means
      return nullptr;
    }
    check(result, call);
    return memory;
  }

  std::string reason_;
};

}  // namespace

std::unique_ptr<CudaApi> make_cuda_runtime() {
  return std::make_unique<CudaRuntime>();
}

}  // namespace gradsync
