#include "gradsync/backends/nccl/nccl_process_group.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "gradsync/backends/nccl/nccl_process_group_impl.hpp"

namespace gradsync {
namespace {

NcclReduceOp to_nccl(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return NcclReduceOp::kSum;
    case ReduceOp::kMax:
      return NcclReduceOp::kMax;
    case ReduceOp::kMin:
      return NcclReduceOp::kMin;
    case ReduceOp::kAverage:
      return NcclReduceOp::kAverage;
  }
  throw Error(ErrorCode::kInternal, "unknown reduction");
}

const NcclProcessGroup::Options& checked(const NcclProcessGroup::Options& options) {
  if (options.timeout <= Seconds(0) || options.watch_interval <= Seconds(0)) {
    throw Error(ErrorCode::kUsage, "nccl: the timeout and the watch interval must be positive");
  }
  return options;
}

std::size_t count_of(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel());
}

}  // namespace

NcclProcessGroup::NcclProcessGroup(const RankEnvironment& environment, const JobStore& job,
                                   CudaDevice& device, NcclApi& api, Clock& clock,
                                   const Options& options)
    : NcclProcessGroup(environment, options.name, clock,
                       std::make_shared<FlightRecorder>(options.flight_recorder_size),
                       [&](std::shared_ptr<FlightRecorder> recorder) {
                         return std::make_shared<Impl>(
                             clock, environment,
                             std::make_shared<NcclJob>(environment, job.store, options.timeout),
                             device, api, std::move(recorder), checked(options));
                       }) {}

NcclProcessGroup::NcclProcessGroup(
    const RankEnvironment& environment, const std::string& name, Clock& clock,
    const std::shared_ptr<FlightRecorder>& recorder,
    const std::function<std::shared_ptr<Impl>(std::shared_ptr<FlightRecorder>)>& make_impl)
    : ProcessGroup(environment.rank, environment.world_size, name, clock, recorder),
      impl_(make_impl(recorder)) {
  impl_->job_->watchdog_begins();
  impl_->watchdog_ = std::thread([impl = impl_] { impl->watch(); });
}

NcclProcessGroup::~NcclProcessGroup() {
  impl_->end();
}

void NcclProcessGroup::shutdown() {
  impl_->shutdown();
}

void NcclProcessGroup::abort(ErrorCode code, const std::string& cause) {
  impl_->job_->fail({impl_->job_->rank(), code, cause, {}});
}

void NcclProcessGroup::stall() {
  impl_->job_->wait_for_failure();
  const Failure failure = *impl_->job_->failure()->get();
  throw Error(failure.code == ErrorCode::kRankDied ? failure.code : ErrorCode::kPeerFailed,
              fmt::format("rank {} had not come back when the job ended: {}", impl_->job_->rank(),
                          failure.describe()));
}

std::shared_ptr<ProcessGroup> NcclProcessGroup::do_split(const std::string& name,
                                                         const std::vector<int>& members) {
  RankEnvironment environment = impl_->env_;
  const auto self = std::find(members.begin(), members.end(), rank());
  environment.rank = static_cast<int>(self - members.begin());
  environment.world_size = static_cast<int>(members.size());
  Options options = impl_->options_;
  options.name = name;
  return std::shared_ptr<ProcessGroup>(
      new NcclProcessGroup(environment, name, clock(), shared_flight_recorder(),
                           [&](const std::shared_ptr<FlightRecorder>&) {
                             return std::make_shared<Impl>(*impl_, environment, options);
                           }));
}

WorkPtr NcclProcessGroup::do_allreduce(Tensor tensor, ReduceOp op, const CollectiveRecord& record) {
  void* const data = tensor.data();
  return impl_->issue(record, {tensor}, [=, this](NcclComm comm, CudaStream stream) {
    return impl_->api.all_reduce(data, data, count_of(tensor), tensor.dtype(), to_nccl(op), comm,
                                 stream);
  });
}

WorkPtr NcclProcessGroup::do_broadcast(Tensor tensor, int root, const CollectiveRecord& record) {
  void* const data = tensor.data();
  return impl_->issue(record, {tensor}, [=, this](NcclComm comm, CudaStream stream) {
    return impl_->api.broadcast(data, data, count_of(tensor), tensor.dtype(), root, comm, stream);
  });
}

WorkPtr NcclProcessGroup::do_allgather(Tensor output, Tensor input,
                                       const CollectiveRecord& record) {
  return impl_->issue(record, {output, input}, [=, this](NcclComm comm, CudaStream stream) {
    return impl_->api.all_gather(input.data(), output.data(), count_of(input), input.dtype(), comm,
                                 stream);
  });
}

WorkPtr NcclProcessGroup::do_reduce(Tensor tensor, int root, ReduceOp op,
                                    const CollectiveRecord& record) {
  void* const data = tensor.data();
  return impl_->issue(record, {tensor}, [=, this](NcclComm comm, CudaStream stream) {
    return impl_->api.reduce(data, data, count_of(tensor), tensor.dtype(), to_nccl(op), root, comm,
                             stream);
  });
}

WorkPtr NcclProcessGroup::do_reduce_scatter(Tensor output, Tensor input, ReduceOp op,
                                            const CollectiveRecord& record) {
  return impl_->issue(record, {output, input}, [=, this](NcclComm comm, CudaStream stream) {
    return impl_->api.reduce_scatter(input.data(), output.data(), count_of(output), output.dtype(),
                                     to_nccl(op), comm, stream);
  });
}

WorkPtr NcclProcessGroup::do_alltoall(Tensor output, Tensor input, const CollectiveRecord& record) {
  return impl_->issue(
      record, {output, input}, [=, this, splits = record.splits](NcclComm comm, CudaStream stream) {
        NcclApi& api = impl_->api;
        NcclResult result = api.group_start();
        const std::byte* from = input.data();
        std::byte* to = output.data();
        for (int peer = 0; peer < size() && result == NcclResult::kSuccess; ++peer) {
          const auto sent = static_cast<std::size_t>(splits->input[static_cast<std::size_t>(peer)]);
          const auto got = static_cast<std::size_t>(splits->output[static_cast<std::size_t>(peer)]);
          if (sent > 0) result = api.send(from, sent, input.dtype(), peer, comm, stream);
          if (got > 0 && result == NcclResult::kSuccess) {
            result = api.recv(to, got, output.dtype(), peer, comm, stream);
          }
          from += sent * element_size(input.dtype());
          to += got * element_size(output.dtype());
        }
        // The group has to be closed after an error, too.
        const NcclResult ended = api.group_end();
        return result == NcclResult::kSuccess ? ended : result;
      });
}

WorkPtr NcclProcessGroup::do_send(Tensor tensor, int dst, const CollectiveRecord& record) {
  return impl_->issue(record, {tensor}, [=, this](NcclComm comm, CudaStream stream) {
    return impl_->api.send(tensor.data(), count_of(tensor), tensor.dtype(), dst, comm, stream);
  });
}

WorkPtr NcclProcessGroup::do_recv(Tensor tensor, int src, const CollectiveRecord& record) {
  return impl_->issue(record, {tensor}, [=, this](NcclComm comm, CudaStream stream) {
    return impl_->api.recv(tensor.data(), count_of(tensor), tensor.dtype(), src, comm, stream);
  });
}

WorkPtr NcclProcessGroup::do_barrier(const CollectiveRecord& record) {
  return impl_->barrier(record);
}

}  // namespace gradsync
