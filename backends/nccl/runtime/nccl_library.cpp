#include "gradsync/backends/nccl/runtime/nccl_library.hpp"

#include <nccl.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

#include <fmt/format.h>

#include "gradsync/backends/cuda/runtime/shared_library.hpp"
#include "gradsync/core/error.hpp"

namespace gradsync {
namespace {

constexpr int kOldest = NCCL_VERSION(2, 18, 0);

ncclDataType_t to_nccl(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return ncclFloat32;
    case DType::kFloat64:
      return ncclFloat64;
    case DType::kFloat16:
      return ncclFloat16;
    case DType::kBFloat16:
      return ncclBfloat16;
    case DType::kInt32:
      return ncclInt32;
    case DType::kInt64:
      return ncclInt64;
    case DType::kUInt8:
      return ncclUint8;
  }
  throw Error(ErrorCode::kInternal, "unknown dtype");
}

ncclRedOp_t to_nccl(NcclReduceOp op) {
  switch (op) {
    case NcclReduceOp::kSum:
      return ncclSum;
    case NcclReduceOp::kMax:
      return ncclMax;
    case NcclReduceOp::kMin:
      return ncclMin;
    case NcclReduceOp::kAverage:
      return ncclAvg;
  }
  throw Error(ErrorCode::kInternal, "unknown reduction");
}

NcclResult from_nccl(ncclResult_t result) {
  return static_cast<NcclResult>(result);
}

#define GRADSYNC_NCCL(name) decltype(&::name) name = library.function<decltype(&::name)>(#name)
#define GRADSYNC_NCCL_OPTIONAL(type, name) type name = library.optional_function<type>(#name)

// Declared here, because the header may be older than these functions. The signatures are part of
// NCCL's ABI.
using SplitFunction = ncclResult_t (*)(ncclComm_t, int, int, ncclComm_t*, ncclConfig_t*);
using RegisterFunction = ncclResult_t (*)(ncclComm_t, void*, std::size_t, void**);
using DeregisterFunction = ncclResult_t (*)(ncclComm_t, void*);
using AllocateFunction = ncclResult_t (*)(void**, std::size_t);
using FreeFunction = ncclResult_t (*)(void*);

/// NCCL's functions under their own names; optional ones are null in versions without them.
struct NcclFunctions {
  explicit NcclFunctions(const SharedLibrary& library_to_use) : library(library_to_use) {}

  SharedLibrary library;
  GRADSYNC_NCCL(ncclGetVersion);
  GRADSYNC_NCCL(ncclGetLastError);
  GRADSYNC_NCCL(ncclGetUniqueId);
  GRADSYNC_NCCL(ncclCommInitRankConfig);
  GRADSYNC_NCCL(ncclCommGetAsyncError);
  GRADSYNC_NCCL(ncclCommAbort);
  GRADSYNC_NCCL(ncclCommFinalize);
  GRADSYNC_NCCL(ncclCommDestroy);
  GRADSYNC_NCCL(ncclAllReduce);
  GRADSYNC_NCCL(ncclBroadcast);
  GRADSYNC_NCCL(ncclAllGather);
  GRADSYNC_NCCL(ncclReduce);
  GRADSYNC_NCCL(ncclReduceScatter);
  GRADSYNC_NCCL(ncclSend);
  GRADSYNC_NCCL(ncclRecv);
  GRADSYNC_NCCL(ncclGroupStart);
  GRADSYNC_NCCL(ncclGroupEnd);
  GRADSYNC_NCCL_OPTIONAL(SplitFunction, ncclCommSplit);            // 2.18.1
  GRADSYNC_NCCL_OPTIONAL(RegisterFunction, ncclCommRegister);      // 2.19
  GRADSYNC_NCCL_OPTIONAL(DeregisterFunction, ncclCommDeregister);  // 2.19
  GRADSYNC_NCCL_OPTIONAL(AllocateFunction, ncclMemAlloc);          // 2.19
  GRADSYNC_NCCL_OPTIONAL(FreeFunction, ncclMemFree);               // 2.19
};

#undef GRADSYNC_NCCL
#undef GRADSYNC_NCCL_OPTIONAL

class NcclLibrary final : public NcclApi {
 public:
  explicit NcclLibrary(const SharedLibrary& library) : nccl_(library) {}

  int version() override {
    int version = 0;
    static_cast<void>(nccl_.ncclGetVersion(&version));
    return version;
  }
  std::string last_error(NcclComm comm) override {
    const char* const text = nccl_.ncclGetLastError(comm);
    return text == nullptr || *text == '\0' ? "no details; run with NCCL_DEBUG=WARN" : text;
  }

  NcclResult get_unique_id(NcclUniqueId& id) override {
    ncclUniqueId made{};
    static_assert(sizeof(made) == sizeof(id.bytes));
    const ncclResult_t result = nccl_.ncclGetUniqueId(&made);
    std::memcpy(id.bytes.data(), &made, sizeof(made));
    return from_nccl(result);
  }
  NcclResult init_rank(NcclComm& comm, int ranks, const NcclUniqueId& id, int rank,
                       const std::string& name) override {
    ncclUniqueId made{};
    std::memcpy(&made, id.bytes.data(), sizeof(made));
    ncclConfig_t config = configuration(name);
    return from_nccl(nccl_.ncclCommInitRankConfig(&comm, ranks, made, rank, &config));
  }
  bool can_split() override { return nccl_.ncclCommSplit != nullptr; }
  NcclResult split(NcclComm parent, int rank, NcclComm& comm, const std::string& name) override {
    ncclConfig_t config = configuration(name);
    constexpr int kColor = 0;
    return from_nccl(nccl_.ncclCommSplit(parent, kColor, rank, &comm, &config));
  }
  NcclResult get_async_error(NcclComm comm, NcclResult& error) override {
    ncclResult_t found = ncclSuccess;
    const ncclResult_t result = nccl_.ncclCommGetAsyncError(comm, &found);
    error = from_nccl(found);
    return from_nccl(result);
  }
  NcclResult abort(NcclComm comm) override { return from_nccl(nccl_.ncclCommAbort(comm)); }
  NcclResult finalize(NcclComm comm) override { return from_nccl(nccl_.ncclCommFinalize(comm)); }
  NcclResult destroy(NcclComm comm) override { return from_nccl(nccl_.ncclCommDestroy(comm)); }

  NcclResult all_reduce(const void* send, void* receive, std::size_t count, DType dtype,
                        NcclReduceOp op, NcclComm comm, CudaStream stream) override {
    return from_nccl(
        nccl_.ncclAllReduce(send, receive, count, to_nccl(dtype), to_nccl(op), comm, stream));
  }
  NcclResult broadcast(const void* send, void* receive, std::size_t count, DType dtype, int root,
                       NcclComm comm, CudaStream stream) override {
    return from_nccl(nccl_.ncclBroadcast(send, receive, count, to_nccl(dtype), root, comm, stream));
  }
  NcclResult all_gather(const void* send, void* receive, std::size_t count, DType dtype,
                        NcclComm comm, CudaStream stream) override {
    return from_nccl(nccl_.ncclAllGather(send, receive, count, to_nccl(dtype), comm, stream));
  }
  NcclResult reduce(const void* send, void* receive, std::size_t count, DType dtype,
                    NcclReduceOp op, int root, NcclComm comm, CudaStream stream) override {
    return from_nccl(
        nccl_.ncclReduce(send, receive, count, to_nccl(dtype), to_nccl(op), root, comm, stream));
  }
  NcclResult reduce_scatter(const void* send, void* receive, std::size_t count, DType dtype,
                            NcclReduceOp op, NcclComm comm, CudaStream stream) override {
    return from_nccl(
        nccl_.ncclReduceScatter(send, receive, count, to_nccl(dtype), to_nccl(op), comm, stream));
  }
  NcclResult send(const void* data, std::size_t count, DType dtype, int peer, NcclComm comm,
                  CudaStream stream) override {
    return from_nccl(nccl_.ncclSend(data, count, to_nccl(dtype), peer, comm, stream));
  }
  NcclResult recv(void* data, std::size_t count, DType dtype, int peer, NcclComm comm,
                  CudaStream stream) override {
    return from_nccl(nccl_.ncclRecv(data, count, to_nccl(dtype), peer, comm, stream));
  }
  NcclResult group_start() override { return from_nccl(nccl_.ncclGroupStart()); }
  NcclResult group_end() override { return from_nccl(nccl_.ncclGroupEnd()); }

  bool can_register() override {
    return nccl_.ncclCommRegister != nullptr && nccl_.ncclCommDeregister != nullptr &&
           nccl_.ncclMemAlloc != nullptr && nccl_.ncclMemFree != nullptr;
  }
  NcclResult register_buffer(NcclComm comm, void* buffer, std::size_t nbytes,
                             void*& handle) override {
    return from_nccl(nccl_.ncclCommRegister(comm, buffer, nbytes, &handle));
  }
  NcclResult deregister_buffer(NcclComm comm, void* handle) override {
    return from_nccl(nccl_.ncclCommDeregister(comm, handle));
  }
  void* allocate(std::size_t nbytes) override {
    void* memory = nullptr;
    return nccl_.ncclMemAlloc(&memory, nbytes) == ncclSuccess ? memory : nullptr;
  }
  void release(void* memory) noexcept override { static_cast<void>(nccl_.ncclMemFree(memory)); }

 private:
  /// The library reads only the part of the struct it knows, and uses defaults for fields newer
  /// than the header.
  ncclConfig_t configuration(const std::string& name) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
    config.commName = names_.emplace_back(name).c_str();  // NCCL keeps the pointer
#else
    static_cast<void>(name);
#endif
    return config;
  }

  NcclFunctions nccl_;
  std::deque<std::string> names_;  // the communicators' names
};

}  // namespace

std::unique_ptr<NcclApi> open_nccl() {
  std::vector<std::string> names;
  if (const char* const chosen = std::getenv("GRADSYNC_NCCL_LIBRARY")) {
    names = {chosen};
  } else {
    names = {"libnccl.so.2", GRADSYNC_NCCL_FOUND};
  }
  auto nccl = std::make_unique<NcclLibrary>(SharedLibrary("NCCL", names));
  if (nccl->version() < kOldest) {
    throw Error(
        ErrorCode::kBackendUnavailable,
        fmt::format("NCCL {}.{}.{} is too old: 2.18 is the first that can be used",
                    nccl->version() / 10000, nccl->version() / 100 % 100, nccl->version() % 100));
  }
  return nccl;
}

}  // namespace gradsync
