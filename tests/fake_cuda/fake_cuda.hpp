#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "gradsync/backends/cuda/cublas_api.hpp"
#include "gradsync/backends/cuda/cuda_api.hpp"
#include "tests/fake_cuda/fake_stream.hpp"

namespace gradsync::test {

/// A stand-in for the CUDA runtime with one GPU: its memory is the host's, its streams are threads.
/// Events, stream order and asynchrony are CUDA's, so code that forgets to wait reads what is not
/// there yet. New memory is full of NaN.
class FakeCuda final : public CudaApi {
 public:
  /// Deliberate mistakes, to show that a test would see them.
  enum class Mutation {
    kNone,
    kForgetInputs,  ///< the communication stream does not wait for the compute stream
    kForgetResult,  ///< nor the compute stream for the communication stream
  };

  /// `number` is that by which the PCI ids of GPUs differ; `devices` of them are shown, and all of
  /// them are this one.
  explicit FakeCuda(int number = 0, int devices = 1) : number_(number), devices_(devices) {}
  ~FakeCuda() override;

  void set_number(int number) { number_ = number; }
  void set_mutation(Mutation mutation) { mutation_ = mutation; }
  /// From now on there are so many bytes of memory.
  void set_memory(Bytes memory) { memory_ = memory; }
  /// Those that live, in the order of their creation: the compute stream, the communication stream.
  FakeStream& stream(std::size_t index);
  std::int64_t host_waits() const noexcept { return host_waits_; }
  Bytes allocated() const noexcept { return allocated_; }

  int device_count() override { return devices_; }
  std::string no_device_reason() override { return ""; }
  CudaDeviceInfo device_info(int device) override;
  void set_device(int) override {}
  CudaStream create_stream(bool high_priority) override;
  void destroy_stream(CudaStream stream) noexcept override;
  CudaEvent create_event() override;
  void destroy_event(CudaEvent event) noexcept override;
  void record(CudaEvent event, CudaStream stream) override;
  void wait(CudaStream stream, CudaEvent event) override;
  bool is_done(CudaEvent event) override;
  Seconds elapsed(CudaEvent begin, CudaEvent end) override;
  void* allocate(Bytes nbytes) override;
  void release(void* memory) noexcept override;
  void* allocate_pinned(Bytes nbytes) override;
  void release_pinned(void* memory) noexcept override;
  void copy(void* dst, const void* src, Bytes nbytes, CudaStream stream) override;
  void clear(void* dst, Bytes nbytes, CudaStream stream) override;

 private:
  struct Event;

  int number_;
  int devices_;
  std::atomic<Mutation> mutation_{Mutation::kNone};
  std::atomic<Bytes> memory_{Bytes{1} << 30};
  std::atomic<Bytes> allocated_{0};
  std::atomic<std::int64_t> host_waits_{0};  // looks at an event that was not done
  std::mutex mutex_;
  std::vector<std::unique_ptr<FakeStream>> streams_;  // null when destroyed
  std::vector<bool> high_priority_;
  std::map<CudaEvent, std::shared_ptr<Event>> events_;
  std::map<void*, Bytes> blocks_;

  std::shared_ptr<Event> find(CudaEvent event);
  void drain_all();
};

/// Products on the CPU, in stream order.
class FakeCublas final : public CublasApi {
 public:
  void multiply(const MatrixProduct& product, CudaStream stream) override;
};

}  // namespace gradsync::test
