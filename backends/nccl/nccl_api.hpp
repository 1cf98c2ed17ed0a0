#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "gradsync/backends/cuda/cuda_api.hpp"
#include "gradsync/comm/flight_recorder.hpp"

struct ncclComm;

namespace gradsync {

/// NCCL's communicator handle, declared by its ABI name.
using NcclComm = ncclComm*;

/// ncclResult_t; the values are part of NCCL's ABI.
enum class NcclResult {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,  ///< a peer or the network to it is gone
  kInProgress = 7,   ///< non-blocking communicators: poll get_async_error until it changes
};

/// "ncclSystemError", ...
const char* to_string(NcclResult result) noexcept;

struct NcclUniqueId {
  std::array<char, 128> bytes{};
};

/// NCCL's reductions: the engine's operations plus NCCL's average, which multiplies every input by
/// 1/ranks (rounded to the data type) before the sum.
enum class NcclReduceOp { kSum, kMax, kMin, kAverage };

/// The NCCL calls that the backend uses. Implementations: the real library
/// (runtime/nccl_library.hpp, versions 2.18 to 2.30, which handles missing functions), and the
/// tests' fake.
///
/// Communicators are non-blocking: any call may return kInProgress, and until get_async_error
/// returns something else, only get_async_error and abort may be called. One thread at a time per
/// communicator.
class NcclApi {
 public:
  virtual ~NcclApi() = default;

  /// As ncclGetVersion: 22809 is 2.28.9.
  virtual int version() = 0;
  /// NCCL's message for the last error of the communicator (or of the process, if null).
  virtual std::string last_error(NcclComm comm) = 0;

  /// Called on one rank of a new communicator; the others receive the bytes by other means.
  virtual NcclResult get_unique_id(NcclUniqueId& id) = 0;
  /// Called on all ranks, each with its device set. `name` appears in NCCL's logs if the version
  /// supports names.
  virtual NcclResult init_rank(NcclComm& comm, int ranks, const NcclUniqueId& id, int rank,
                               const std::string& name) = 0;
  /// Called on all ranks of `parent` (2.18): creates a communicator of the same ranks. NCCL writes
  /// the handle to `comm`, which must stay valid until the parent is no longer in progress; the new
  /// communicator may then still be in progress. Only if `can_split`.
  virtual bool can_split() = 0;
  virtual NcclResult split(NcclComm parent, int rank, NcclComm& comm, const std::string& name) = 0;
  virtual NcclResult get_async_error(NcclComm comm, NcclResult& error) = 0;
  /// Aborts pending work on this rank and frees the communicator.
  virtual NcclResult abort(NcclComm comm) = 0;
  /// Collective: flushes pending work. `destroy` then frees the communicator.
  virtual NcclResult finalize(NcclComm comm) = 0;
  virtual NcclResult destroy(NcclComm comm) = 0;

  /// `send` may be `receive`. Counts are elements. All in stream order.
  virtual NcclResult all_reduce(const void* send, void* receive, std::size_t count, DType dtype,
                                NcclReduceOp op, NcclComm comm, CudaStream stream) = 0;
  virtual NcclResult broadcast(const void* send, void* receive, std::size_t count, DType dtype,
                               int root, NcclComm comm, CudaStream stream) = 0;
  /// `count` is the size of one rank's part.
  virtual NcclResult all_gather(const void* send, void* receive, std::size_t count, DType dtype,
                                NcclComm comm, CudaStream stream) = 0;
  /// `receive` is written on `root` only, and may be `send` there.
  virtual NcclResult reduce(const void* send, void* receive, std::size_t count, DType dtype,
                            NcclReduceOp op, int root, NcclComm comm, CudaStream stream) = 0;
  /// `count` is the size of one rank's part.
  virtual NcclResult reduce_scatter(const void* send, void* receive, std::size_t count, DType dtype,
                                    NcclReduceOp op, NcclComm comm, CudaStream stream) = 0;
  virtual NcclResult send(const void* data, std::size_t count, DType dtype, int peer, NcclComm comm,
                          CudaStream stream) = 0;
  virtual NcclResult recv(void* data, std::size_t count, DType dtype, int peer, NcclComm comm,
                          CudaStream stream) = 0;
  /// The calls of one thread between the two run as one operation.
  virtual NcclResult group_start() = 0;
  virtual NcclResult group_end() = 0;

  /// Registers a buffer so that NCCL can use it directly (2.19); false if not supported. All ranks
  /// must register their buffers alike.
  virtual bool can_register() = 0;
  virtual NcclResult register_buffer(NcclComm comm, void* buffer, std::size_t nbytes,
                                     void*& handle) = 0;
  virtual NcclResult deregister_buffer(NcclComm comm, void* handle) = 0;
  /// Device memory that may be registered; null if there is not enough. Only if `can_register`.
  virtual void* allocate(std::size_t nbytes) = 0;
  virtual void release(void* memory) noexcept = 0;
};

}  // namespace gradsync
