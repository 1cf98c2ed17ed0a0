#pragma once

#include <memory>
#include <string>

#include "gradsync/core/units.hpp"

struct CUstream_st;
struct CUevent_st;

namespace gradsync {

/// The CUDA runtime's handles, declared by their ABI names, so that code written against CudaApi
/// compiles without a CUDA installation.
using CudaStream = CUstream_st*;
using CudaEvent = CUevent_st*;

/// The properties of a GPU that the backend uses.
struct CudaDeviceInfo {
  std::string name;    ///< "NVIDIA H100 80GB HBM3"
  std::string pci_id;  ///< "0000:1b:00.0": identifies a GPU across processes
  int major = 0;       ///< compute capability
  int minor = 0;
  int multiprocessors = 0;
  Bytes memory = 0;
};

/// The CUDA runtime calls that the backend uses. Implementations: the real runtime
/// (runtime/cuda_runtime.hpp), and the tests' fake.
///
/// Calls apply to the calling thread's device (`set_device`). A failed call throws Error(kInternal)
/// with the call's name and CUDA's message. Thread-safe like the runtime: different threads may use
/// different streams and events concurrently.
class CudaApi {
 public:
  virtual ~CudaApi() = default;

  /// 0 without a GPU or driver; `no_device_reason` then says why.
  virtual int device_count() = 0;
  virtual std::string no_device_reason() = 0;
  virtual CudaDeviceInfo device_info(int device) = 0;
  virtual void set_device(int device) = 0;

  /// Not synchronized with the legacy default stream. Kernels of a high-priority stream are
  /// scheduled first.
  virtual CudaStream create_stream(bool high_priority) = 0;
  virtual void destroy_stream(CudaStream stream) noexcept = 0;
  virtual CudaEvent create_event() = 0;  ///< with timing enabled
  virtual void destroy_event(CudaEvent event) noexcept = 0;

  /// The event completes when all work now in the stream has completed.
  virtual void record(CudaEvent event, CudaStream stream) = 0;
  /// Work enqueued in the stream after this call waits for the event's latest record. The host does
  /// not wait.
  virtual void wait(CudaStream stream, CudaEvent event) = 0;
  virtual bool is_done(CudaEvent event) = 0;
  /// Time between two completed events; both must have been recorded on this device.
  virtual Seconds elapsed(CudaEvent begin, CudaEvent end) = 0;

  /// Null if the device is out of memory. Aligned to at least 256 bytes.
  virtual void* allocate(Bytes nbytes) = 0;
  /// Blocks until the device no longer uses the memory.
  virtual void release(void* memory) noexcept = 0;
  /// Page-locked host memory, for asynchronous copies.
  virtual void* allocate_pinned(Bytes nbytes) = 0;
  virtual void release_pinned(void* memory) noexcept = 0;

  /// In stream order, in any direction. Host memory must be pinned and stay valid until the copy
  /// completes.
  virtual void copy(void* dst, const void* src, Bytes nbytes, CudaStream stream) = 0;
  /// Zeroes, in stream order.
  virtual void clear(void* dst, Bytes nbytes, CudaStream stream) = 0;
};

}  // namespace gradsync
