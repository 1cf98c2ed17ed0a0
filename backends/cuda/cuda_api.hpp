#pragma once

#include <memory>
#include <string>

#include "gradsync/core/units.hpp"

struct CUstream_st;
struct CUevent_st;

namespace gradsync {

/// The CUDA runtime's handles, by the names that are part of its binary interface: what is written
/// against CudaApi compiles where no CUDA is installed.
using CudaStream = CUstream_st*;
using CudaEvent = CUevent_st*;

/// What the backend wants to know of a GPU.
struct CudaDeviceInfo {
  std::string name;    ///< "NVIDIA H100 80GB HBM3"
  std::string pci_id;  ///< "0000:1b:00.0": tells apart what processes number alike
  int major = 0;       ///< compute capability
  int minor = 0;
  int multiprocessors = 0;
  Bytes memory = 0;
};

/// The calls of the CUDA runtime that the backend uses, and no others. Implementations: the real
/// runtime (runtime/cuda_runtime.hpp), and the stand-in of the tests.
///
/// Calls concern the calling thread's device (`set_device`). A call that fails throws
/// Error(kInternal) with the call's name and CUDA's own words. Thread-safe as the runtime is:
/// different threads may use different streams and events at the same time.
class CudaApi {
 public:
  virtual ~CudaApi() = default;

  /// 0 where there is no GPU or no driver; `no_device_reason` then says why.
  virtual int device_count() = 0;
  virtual std::string no_device_reason() = 0;
  virtual CudaDeviceInfo device_info(int device) = 0;
  virtual void set_device(int device) = 0;

  /// Independent of the legacy default stream. A high-priority stream's kernels are scheduled
  /// first.
  virtual CudaStream create_stream(bool high_priority) = 0;
  virtual void destroy_stream(CudaStream stream) noexcept = 0;
  virtual CudaEvent create_event() = 0;  ///< with timing
  virtual void destroy_event(CudaEvent event) noexcept = 0;

  /// The event is done when all that is in the stream now is.
  virtual void record(CudaEvent event, CudaStream stream) = 0;
  /// What is put into the stream from now on waits for the event as it was recorded last. The host
  /// does not wait.
  virtual void wait(CudaStream stream, CudaEvent event) = 0;
  virtual bool is_done(CudaEvent event) = 0;
  /// Between two events that are done; both recorded on this device.
  virtual Seconds elapsed(CudaEvent begin, CudaEvent end) = 0;

  /// Null when the device's memory does not suffice. Aligned to 256 bytes at the least.
  virtual void* allocate(Bytes nbytes) = 0;
  /// Waits until the device no longer uses it.
  virtual void release(void* memory) noexcept = 0;
  /// Page-locked host memory, for copies that do not hold the host up.
  virtual void* allocate_pinned(Bytes nbytes) = 0;
  virtual void release_pinned(void* memory) noexcept = 0;

  /// In stream order, in any direction; host memory must be pinned and live until the copy is done.
  virtual void copy(void* dst, const void* src, Bytes nbytes, CudaStream stream) = 0;
  /// Zeroes, in stream order.
  virtual void clear(void* dst, Bytes nbytes, CudaStream stream) = 0;
};

}  // namespace gradsync
