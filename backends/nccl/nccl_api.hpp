#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "gradsync/backends/cuda/cuda_api.hpp"
#include "gradsync/comm/flight_recorder.hpp"

struct ncclComm;

namespace gradsync {

/// NCCL's handle of a communicator, by the name that is part of its binary interface.
using NcclComm = ncclComm*;

/// ncclResult_t; the numbers are part of NCCL's binary interface.
enum class NcclResult {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,  ///< a peer is gone, or the network to it
  kInProgress = 7,   ///< non-blocking communicators: ask get_async_error until it is another
};

/// "ncclSystemError", ...
const char* to_string(NcclResult result) noexcept;

struct NcclUniqueId {
  std::array<char, 128> bytes{};
};

/// What all ranks reduce with: the engine's operations, and NCCL's mean. The mean multiplies every
/// input by 1/ranks (rounded to the data type) before the sum.
enum class NcclReduceOp { kSum, kMax, kMin, kAverage };

/// The calls of NCCL that the backend uses, and no others. Implementations: the real library
/// (runtime/nccl_library.hpp, versions 2.18 to 2.30; what a version lacks is inside it), and the
/// stand-in of the tests.
///
/// Communicators are non-blocking: any call may return kInProgress, and none but get_async_error
/// and abort may follow before that says otherwise. One thread at a time may call with one
/// communicator.
class NcclApi {
 public:
  virtual ~NcclApi() = default;

  /// As ncclGetVersion: 22809 is 2.28.9.
  virtual int version() = 0;
  /// NCCL's own words for the last error of the communicator (or of the process, for null).
  virtual std::string last_error(NcclComm comm) = 0;

  /// On one rank of a communicator-to-be; the others get the bytes by other ways.
  virtual NcclResult get_unique_id(NcclUniqueId& id) = 0;
  /// All ranks, each with its device set. `name` shows up in NCCL's own logs where the version
  /// knows names.
  virtual NcclResult init_rank(NcclComm& comm, int ranks, const NcclUniqueId& id, int rank,
                               const std::string& name) = 0;
  /// All ranks of `parent` at once (2.18): a communicator of the same ranks. The new one's handle
  /// is in `comm`, which must live until then, when the parent is no longer in progress; it may
  /// itself be in progress still. Only if `can_split`.
  virtual bool can_split() = 0;
  virtual NcclResult split(NcclComm parent, int rank, NcclComm& comm, const std::string& name) = 0;
  virtual NcclResult get_async_error(NcclComm comm, NcclResult& error) = 0;
  /// Ends what is under way on this rank and frees the communicator.
  virtual NcclResult abort(NcclComm comm) = 0;
  /// Collective: flushes what is under way. Then `destroy` frees the communicator.
  virtual NcclResult finalize(NcclComm comm) = 0;
  virtual NcclResult destroy(NcclComm comm) = 0;

  /// `send` may be `receive`. Counts are elements. All in stream order.
  virtual NcclResult all_reduce(const void* send, void* receive, std::size_t count, DType dtype,
                                NcclReduceOp op, NcclComm comm, CudaStream stream) = 0;
  virtual NcclResult broadcast(const void* send, void* receive, std::size_t count, DType dtype,
                               int root, NcclComm comm, CudaStream stream) = 0;
  /// `count` is that of one rank's part.
  virtual NcclResult all_gather(const void* send, void* receive, std::size_t count, DType dtype,
                                NcclComm comm, CudaStream stream) = 0;

  /// Makes the library's direct use of a buffer possible (2.19); false where it cannot be had. All
  /// ranks register their buffers alike.
  virtual bool can_register() = 0;
  virtual NcclResult register_buffer(NcclComm comm, void* buffer, std::size_t nbytes,
                                     void*& handle) = 0;
  virtual NcclResult deregister_buffer(NcclComm comm, void* handle) = 0;
  /// Device memory that may be registered; null when there is not enough. Only if `can_register`.
  virtual void* allocate(std::size_t nbytes) = 0;
  virtual void release(void* memory) noexcept = 0;
};

}  // namespace gradsync
