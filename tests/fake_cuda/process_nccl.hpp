#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gradsync/backends/nccl/nccl_api.hpp"
#include "gradsync/backends/store/rank_environment.hpp"
#include "tests/fake_cuda/nccl_call.hpp"

namespace gradsync::test {

/// A stand-in for NCCL whose ranks are processes: what they send each other goes through the job's
/// store, and is combined in the order of NCCL's ring (fake_nccl.hpp). As there, a collective sits
/// in its stream until all ranks' are there and alike, for ever if need be, and `abort` ends it.
class ProcessNccl final : public NcclApi {
 public:
  explicit ProcessNccl(const RankEnvironment& environment) : environment_(environment) {}

  int version() override { return 22809; }
  std::string last_error(NcclComm) override { return "no details from the stand-in"; }
  NcclResult get_unique_id(NcclUniqueId& id) override;
  NcclResult init_rank(NcclComm& comm, int ranks, const NcclUniqueId& id, int rank,
                       const std::string& name) override;
  bool can_split() override { return true; }
  NcclResult split(NcclComm parent, int rank, NcclComm& comm, const std::string& name) override;
  NcclResult get_async_error(NcclComm comm, NcclResult& error) override;
  NcclResult abort(NcclComm comm) override;
  NcclResult finalize(NcclComm comm) override;
  NcclResult destroy(NcclComm comm) override;
  NcclResult all_reduce(const void* send, void* receive, std::size_t count, DType dtype,
                        NcclReduceOp op, NcclComm comm, CudaStream stream) override;
  NcclResult broadcast(const void* send, void* receive, std::size_t count, DType dtype, int root,
                       NcclComm comm, CudaStream stream) override;
  NcclResult all_gather(const void* send, void* receive, std::size_t count, DType dtype,
                        NcclComm comm, CudaStream stream) override;
  NcclResult reduce(const void* send, void* receive, std::size_t count, DType dtype,
                    NcclReduceOp op, int root, NcclComm comm, CudaStream stream) override;
  NcclResult reduce_scatter(const void* send, void* receive, std::size_t count, DType dtype,
                            NcclReduceOp op, NcclComm comm, CudaStream stream) override;
  NcclResult send(const void* data, std::size_t count, DType dtype, int peer, NcclComm comm,
                  CudaStream stream) override;
  NcclResult recv(void* data, std::size_t count, DType dtype, int peer, NcclComm comm,
                  CudaStream stream) override;
  NcclResult group_start() override;
  NcclResult group_end() override;
  bool can_register() override { return false; }
  NcclResult register_buffer(NcclComm, void*, std::size_t, void*&) override {
    return NcclResult::kInvalidUsage;
  }
  NcclResult deregister_buffer(NcclComm, void*) override { return NcclResult::kInvalidUsage; }
  void* allocate(std::size_t) override { return nullptr; }
  void release(void*) noexcept override {}

 private:
  struct Communicator;

  NcclComm connect(const std::string& id, int ranks, int rank);
  NcclResult put(NcclComm comm, CudaStream stream, const NcclCall& call);
  NcclResult put_message(NcclComm comm, CudaStream stream, const NcclMessage& message);
  NcclResult run_group();
  std::shared_ptr<Communicator> find(NcclComm comm);
  void forget(NcclComm comm);

  RankEnvironment environment_;
  std::atomic<int> ids_{0};
  // The sends and receives of an open group; used by the rank's thread only.
  int group_depth_ = 0;
  std::vector<NcclMessage> group_;
  NcclComm group_comm_ = nullptr;
  CudaStream group_stream_ = nullptr;
  std::mutex mutex_;
  std::map<NcclComm, std::shared_ptr<Communicator>> communicators_;
};

}  // namespace gradsync::test
