#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "gradsync/backends/cuda/cublas_api.hpp"
#include "gradsync/backends/cuda/cuda_api.hpp"
#include "gradsync/backends/nccl/nccl_api.hpp"

/// No-op CUDA, cuBLAS and NCCL that count their calls, so that a step measures the engine's own
/// cost. null_gpu.cpp counts the kernel launches.
namespace gradsync::bench {

/// Calls since program start. Not thread-safe: used by one rank, whose watchdog makes none of these
/// calls.
struct GpuCalls {
  std::int64_t kernels = 0;   ///< launches of the project's own kernels
  std::int64_t products = 0;  ///< of cuBLAS
  std::int64_t copies = 0;    ///< cudaMemcpyAsync
  std::int64_t clears = 0;    ///< cudaMemsetAsync
  std::int64_t collectives = 0;
  std::int64_t records = 0;  ///< cudaEventRecord
  std::int64_t waits = 0;    ///< cudaStreamWaitEvent

  GpuCalls operator-(const GpuCalls& before) const {
    return {kernels - before.kernels, products - before.products,       copies - before.copies,
            clears - before.clears,   collectives - before.collectives, records - before.records,
            waits - before.waits};
  }
};
inline GpuCalls gpu_calls;

/// Every operation completes immediately.
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
  void record(CudaEvent, CudaStream) override { ++gpu_calls.records; }
  void wait(CudaStream, CudaEvent) override { ++gpu_calls.waits; }
  bool is_done(CudaEvent) override { return true; }
  Seconds elapsed(CudaEvent, CudaEvent) override { return Seconds{0}; }
  void* allocate(Bytes nbytes) override { return std::malloc(static_cast<std::size_t>(nbytes)); }
  void release(void* memory) noexcept override { std::free(memory); }
  void* allocate_pinned(Bytes nbytes) override { return allocate(nbytes); }
  void release_pinned(void* memory) noexcept override { std::free(memory); }
  void copy(void* dst, const void* src, Bytes nbytes, CudaStream) override {
    ++gpu_calls.copies;
    // Small buffers are control data: bucket layouts, counts.
    constexpr Bytes kControl = 64 * 1024;
    if (nbytes > kControl) return;
    std::copy_n(static_cast<const char*>(src), nbytes, static_cast<char*>(dst));
  }
  void clear(void*, Bytes, CudaStream) override { ++gpu_calls.clears; }

 private:
  template <typename Handle>
  Handle handle() {
    return reinterpret_cast<Handle>(++next_);
  }
  std::uintptr_t next_ = 0;
};

class NullCublas final : public CublasApi {
 public:
  void multiply(const MatrixProduct&, CudaStream) override { ++gpu_calls.products; }
};

/// A group of one rank.
class NullNccl final : public NcclApi {
 public:
  int version() override { return 22809; }
  std::string last_error(NcclComm) override { return ""; }
  NcclResult get_unique_id(NcclUniqueId&) override { return NcclResult::kSuccess; }
  NcclResult init_rank(NcclComm& comm, int, const NcclUniqueId&, int, const std::string&) override {
    comm = reinterpret_cast<NcclComm>(std::uintptr_t{1});
    return NcclResult::kSuccess;
  }
  bool can_split() override { return false; }
  NcclResult split(NcclComm, int, NcclComm&, const std::string&) override {
    return NcclResult::kInvalidUsage;
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
    ++gpu_calls.collectives;
    return NcclResult::kSuccess;
  }
  NcclResult broadcast(const void*, void*, std::size_t, DType, int, NcclComm, CudaStream) override {
    ++gpu_calls.collectives;
    return NcclResult::kSuccess;
  }
  NcclResult all_gather(const void* send, void* receive, std::size_t count, DType dtype, NcclComm,
                        CudaStream) override {
    ++gpu_calls.collectives;
    std::copy_n(static_cast<const char*>(send), count * element_size(dtype),
                static_cast<char*>(receive));  // from the only rank
    return NcclResult::kSuccess;
  }
  NcclResult reduce(const void*, void*, std::size_t, DType, NcclReduceOp, int, NcclComm,
                    CudaStream) override {
    return NcclResult::kInvalidUsage;
  }
  NcclResult reduce_scatter(const void*, void*, std::size_t, DType, NcclReduceOp, NcclComm,
                            CudaStream) override {
    return NcclResult::kInvalidUsage;
  }
  NcclResult send(const void*, std::size_t, DType, int, NcclComm, CudaStream) override {
    return NcclResult::kInvalidUsage;
  }
  NcclResult recv(void*, std::size_t, DType, int, NcclComm, CudaStream) override {
    return NcclResult::kInvalidUsage;
  }
  NcclResult group_start() override { return NcclResult::kInvalidUsage; }
  NcclResult group_end() override { return NcclResult::kInvalidUsage; }
  bool can_register() override { return false; }
  NcclResult register_buffer(NcclComm, void*, std::size_t, void*&) override {
    return NcclResult::kInvalidUsage;
  }
  NcclResult deregister_buffer(NcclComm, void*) override { return NcclResult::kInvalidUsage; }
  void* allocate(std::size_t) override { return nullptr; }
  void release(void*) noexcept override {}
};

}  // namespace gradsync::bench
