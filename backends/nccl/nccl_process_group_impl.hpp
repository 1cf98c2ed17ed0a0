#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gradsync/backends/nccl/nccl_communicator.hpp"
#include "gradsync/backends/nccl/nccl_job.hpp"
#include "gradsync/backends/nccl/nccl_process_group.hpp"
#include "gradsync/backends/nccl/nccl_work.hpp"
#include "gradsync/backends/nccl/signature_comparison.hpp"

namespace gradsync {

/// The state of an NcclProcessGroup: nccl_process_group_impl.cpp creates it, enqueues collectives
/// and ends it; nccl_watchdog.cpp follows them.
class NcclProcessGroup::Impl {
 public:
  /// The group of all ranks of the job.
  Impl(Clock& clock, const RankEnvironment& environment, std::shared_ptr<NcclJob> job,
       CudaDevice& device, NcclApi& api, std::shared_ptr<FlightRecorder> recorder,
       const Options& options);
  /// The subgroup of `parent` described by `environment`.
  Impl(Impl& parent, const RankEnvironment& environment, const Options& options);

  using Call = std::function<NcclResult(NcclComm, CudaStream)>;
  /// Enqueues a collective in the communication stream. `call(comm, stream)` makes the NCCL call.
  WorkPtr issue(const CollectiveRecord& record, std::vector<Tensor> tensors, const Call& call,
                bool host_waits = false);
  WorkPtr barrier(const CollectiveRecord& record);
  void shutdown();
  /// The owner releases the group.
  void end();

  /// The watchdog thread's main loop; keeps the Impl alive.
  void watch();

  NcclApi& api;

 private:
  Impl(Clock& clock, const RankEnvironment& environment, std::shared_ptr<NcclJob> job,
       CudaDevice& device, NcclApi& api, std::shared_ptr<FlightRecorder> recorder,
       const Options& options, bool is_subgroup);
  template <typename Connect>
  void connect(Connect make_communicator);
  void wait_until_idle();
  void compare_signature(const CollectiveRecord& record);
  void register_buffer(const Tensor& tensor);

  void note_progress();
  void look_at_works(std::unique_lock<std::mutex>& lock);
  void look_at_nccl();
  std::deque<std::shared_ptr<NcclWork>> end_works();
  std::string describe_timeout(const CollectiveRecord& record, bool started) const;

  const RankEnvironment env_;  // rank and size within this group
  const std::shared_ptr<NcclJob> job_;
  CudaDevice& device_;
  const Options options_;
  const bool is_subgroup_;

  Clock& clock_;
  const std::shared_ptr<FlightRecorder> recorder_;
  CudaStream stream_ = nullptr;
  std::unique_ptr<NcclCommunicator> communicator_;
  std::unique_ptr<SignatureComparison> signatures_;  // null if signatures are not compared
  Tensor token_;                                     // the payload of a barrier
  std::map<const void*, void*> registered_;

  // Guarded by the job's mutex.
  std::deque<std::shared_ptr<NcclWork>> pending_;  // in stream order
  bool head_started_ = false;
  Seconds head_since_{0};  // since when the head of the queue has been in the stream
  bool stopping_ = false;
  bool watch_ended_ = false;

  std::unique_ptr<EventTimeline> timeline_;  // used by the watchdog only
  std::thread watchdog_;

  friend class NcclProcessGroup;
};

}  // namespace gradsync
