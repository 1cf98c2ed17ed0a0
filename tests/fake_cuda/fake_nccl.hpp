#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gradsync/backends/nccl/nccl_api.hpp"
#include "tests/fake_cuda/nccl_call.hpp"

namespace gradsync::test {

/// What joins the ranks of a test: the wires of the stand-in. One a test.
class FakeNcclNetwork {
 public:
  FakeNcclNetwork();
  ~FakeNcclNetwork();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
  friend class FakeNccl;
};

/// Faults of one rank's NCCL.
struct FakeNcclFaults {
  std::atomic<bool> creation_stays_in_progress{
      false};  ///< also of communicators that are split off
  std::atomic<NcclResult> creation_fails{NcclResult::kSuccess};
  std::atomic<NcclResult> async_error{NcclResult::kSuccess};  ///< reported from now on
  std::atomic<NcclResult> next_call{NcclResult::kSuccess};    ///< what one collective returns
  std::atomic<int> calls_stay_in_progress{0};  ///< so many looks until a collective is taken
};

/// A stand-in for NCCL: ranks are threads of one process, each with its own FakeNccl. A collective
/// sits in its stream until all ranks' are there, for ever if need be; then memory is combined in
/// the order of NCCL's ring, with one channel. Ranks that call different things wait for ever, too:
/// like NCCL's kernels, these know nothing of each other but their data. `abort` ends them.
class FakeNccl final : public NcclApi {
 public:
  explicit FakeNccl(FakeNcclNetwork& network) : network_(network.impl_) {}

  FakeNcclFaults faults;
  int version_number = 22809;
  bool knows_registration = true;
  bool knows_split = true;

  int aborts() const noexcept { return aborts_; }
  int destroyed() const noexcept { return destroyed_; }
  int registered() const noexcept { return registered_; }
  int collectives() const noexcept { return collectives_; }
  int splits() const noexcept { return splits_; }
  int averages() const noexcept { return averages_; }  ///< all-reduces with kAverage

  int version() override { return version_number; }
  std::string last_error(NcclComm) override { return "the stand-in was told to fail"; }
  NcclResult get_unique_id(NcclUniqueId& id) override;
  NcclResult init_rank(NcclComm& comm, int ranks, const NcclUniqueId& id, int rank,
                       const std::string& name) override;
  bool can_split() override { return knows_split; }
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
  bool can_register() override { return knows_registration; }
  NcclResult register_buffer(NcclComm comm, void* buffer, std::size_t nbytes,
                             void*& handle) override;
  NcclResult deregister_buffer(NcclComm comm, void* handle) override;
  void* allocate(std::size_t nbytes) override;
  void release(void* memory) noexcept override;

 private:
  struct Communicator;

  NcclResult put(NcclComm comm, CudaStream stream, const NcclCall& call);
  NcclResult put_message(NcclComm comm, CudaStream stream, const NcclMessage& message);
  NcclResult run_group();
  NcclComm join_ring(const std::string& id, int ranks, int rank);
  std::shared_ptr<Communicator> find(NcclComm comm);

  std::shared_ptr<FakeNcclNetwork::Impl> network_;
  // The sends and receives of an open group; used by the rank's thread only.
  int group_depth_ = 0;
  std::vector<NcclMessage> group_;
  NcclComm group_comm_ = nullptr;
  CudaStream group_stream_ = nullptr;
  std::mutex mutex_;
  std::map<NcclComm, std::shared_ptr<Communicator>> communicators_;
  std::atomic<int> aborts_{0};
  std::atomic<int> destroyed_{0};
  std::atomic<int> registered_{0};
  std::atomic<int> collectives_{0};
  std::atomic<int> averages_{0};
  std::atomic<int> splits_{0};

  friend struct FakeNcclNetwork::Impl;
};

}  // namespace gradsync::test
