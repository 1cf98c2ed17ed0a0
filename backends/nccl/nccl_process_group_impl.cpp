#include "gradsync/backends/nccl/nccl_process_group_impl.hpp"

#include <utility>

#include <fmt/format.h>

#include "gradsync/backends/nccl/nccl_rendezvous.hpp"

namespace gradsync {
namespace {

/// Delay between finding a mismatch and ending the job. The other ranks arrive in this time, and
/// their records are the votes on which rank is the odd one out.
constexpr Seconds kVoteTime{0.2};
/// NCCL's abort waits for its own threads; if it hangs, the process must still be able to exit.
constexpr Seconds kAbortPatience{10};
/// Smaller buffers gain nothing from registration.
constexpr Bytes kRegisterFrom = Bytes{1} << 20;

}  // namespace

NcclProcessGroup::Impl::Impl(Clock& clock, const RankEnvironment& environment,
                             std::shared_ptr<NcclJob> job, CudaDevice& device, NcclApi& nccl,
                             std::shared_ptr<FlightRecorder> recorder, const Options& options,
                             bool is_subgroup)
    : api(nccl),
      env_(environment),
      job_(std::move(job)),
      device_(device),
      options_(options),
      is_subgroup_(is_subgroup),
      clock_(clock),
      recorder_(std::move(recorder)) {}

NcclProcessGroup::Impl::Impl(Clock& clock, const RankEnvironment& environment,
                             std::shared_ptr<NcclJob> job, CudaDevice& device, NcclApi& nccl,
                             std::shared_ptr<FlightRecorder> recorder, const Options& options)
    : Impl(clock, environment, std::move(job), device, nccl, std::move(recorder), options, false) {
  NcclRendezvous rendezvous(env_, job_->store(), options_.name, options_.timeout);
  try {
    rendezvous.join();
    rendezvous.check_alike(api.version(), device_.api().device_info(device_.ordinal()).pci_id);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::kUsage) job_->fail({env_.rank, e.code(), e.what(), {}});
    throw;
  }
  job_->watch_for_end();
  connect([&](const std::function<void()>& check) {
    const NcclUniqueId id = rendezvous.exchange_id(api, check);
    return std::make_unique<NcclCommunicator>(
        api, id,
        NcclCommunicator::Options{env_.rank, env_.world_size, options_.name,
                                  rendezvous.time_left()},
        check);
  });
  device_.set_interruption([this] { job_->check_device_wait(); });
}

NcclProcessGroup::Impl::Impl(Impl& parent, const RankEnvironment& environment,
                             const Options& options)
    : Impl(parent.clock_, environment, parent.job_, parent.device_, parent.api, parent.recorder_,
           options, true) {
  // Finds a missing rank, by number, before NCCL would block on it.
  NcclRendezvous rendezvous(env_, job_->store(), options_.name, options_.timeout);
  rendezvous.join();
  connect([&](const std::function<void()>& check) {
    const NcclCommunicator::Options chosen{env_.rank, env_.world_size, options_.name,
                                           rendezvous.time_left()};
    // ncclCommSplit must be called by every rank of the parent, but only members call this.
    if (env_.world_size == parent.env_.world_size && api.can_split()) {
      parent.wait_until_idle();  // NCCL requires the parent to be idle
      return std::make_unique<NcclCommunicator>(*parent.communicator_, chosen, check);
    }
    return std::make_unique<NcclCommunicator>(api, rendezvous.exchange_id(api, check), chosen,
                                              check);
  });
}

/// Creates the communicator and everything needed to use it.
template <typename Connect>
void NcclProcessGroup::Impl::connect(Connect make_communicator) {
  CollectiveRecord creation;
  creation.group = options_.name;
  creation.label.what = "setting up NCCL";
  job_->host_is_at(creation);
  try {
    communicator_ = make_communicator([this] { job_->throw_if_failed(); });
  } catch (const CommError&) {
    throw;  // the others already know
  } catch (const Error& e) {
    job_->fail({job_->rank(), e.code(), e.what(), {}});
    job_->throw_if_failed();
  }
  stream_ = device_.api().create_stream(true);
  timeline_ = std::make_unique<EventTimeline>(device_.api(), device_.events(), stream_, clock_);
  token_ = Tensor::zeros({1}, DType::kInt32, device_);
}

void NcclProcessGroup::Impl::wait_until_idle() {
  const EventPtr idle = take_event(device_.events());
  device_.api().record(idle.get(), stream_);
  device_.wait_on_host(idle.get());
}

WorkPtr NcclProcessGroup::Impl::issue(const CollectiveRecord& record, std::vector<Tensor> tensors,
                                      const Call& call, bool host_waits) {
  for (const Tensor& tensor : tensors) {
    if (&tensor.device() != &device_) {
      throw Error(ErrorCode::kMisuse,
                  fmt::format("rank {}: NCCL moves tensors on {} and was given one on {}",
                              env_.rank, device_.name(), tensor.device().name()));
    }
    if (options_.register_buffers) register_buffer(tensor);
  }
  auto work = std::make_shared<NcclWork>(record, job_->rank(), device_, host_waits,
                                         std::move(tensors), job_->failure());
  CudaApi& cuda = device_.api();
  try {
    if (const auto failure = job_->failure()->get()) {
      throw error_for(*failure, job_->rank(), record);
    }
    if (record.label_must_match && env_.world_size > 1) compare_signature(record);
    // The collective reads what the compute stream has written, so it starts after all work that is
    // in that stream now, but not after later work. This is the overlap.
    const EventPtr inputs_ready = take_event(device_.events());
    cuda.record(inputs_ready.get(), device_.compute_stream());
    cuda.wait(stream_, inputs_ready.get());
    cuda.record(work->begin().get(), stream_);
    communicator_->enqueue(to_string(record.op),
                           [&](NcclComm comm) { return call(comm, stream_); });
    cuda.record(work->end().get(), stream_);
  } catch (const Error& e) {
    // Rejected, or aborted while being enqueued; the work's wait reports which.
    if (!job_->failed()) job_->fail({job_->rank(), e.code(), e.what(), {}});
  }
  bool is_head = false;
  {
    const std::lock_guard lock(job_->mutex);
    is_head = pending_.empty();
    if (is_head) {
      head_since_ = clock_.now();
      head_started_ = false;
    }
    // After a failure the watchdog no longer looks at any work.
    if (!job_->failed()) {
      pending_.push_back(work);
    } else {
      recorder_->fail(record.group, record.sequence, clock_.now(),
                      error_for(*job_->failure()->get(), job_->rank(), record).cause());
    }
  }
  if (is_head) job_->host_is_at(record);
  return work;
}

void NcclProcessGroup::Impl::compare_signature(const CollectiveRecord& record) {
  if (!signatures_) {
    signatures_ = std::make_unique<SignatureComparison>(
        job_->store(), options_.name, env_.rank, job_->rank(), env_.rank == 0, options_.timeout,
        [this](const std::string& cause) {
          job_->wait_for_failure(kVoteTime);
          job_->fail({job_->rank(), ErrorCode::kDesync, cause, {}});
        });
  }
  signatures_->add(record);
}

void NcclProcessGroup::Impl::register_buffer(const Tensor& tensor) {
  if (tensor.nbytes() < kRegisterFrom || !api.can_register()) return;
  const auto [entry, is_new] = registered_.try_emplace(tensor.data(), nullptr);
  if (!is_new) return;
  communicator_->enqueue("ncclCommRegister", [&](NcclComm comm) {
    const NcclResult result = api.register_buffer(
        comm, tensor.data(), static_cast<std::size_t>(tensor.nbytes()), entry->second);
    // Registration is only an optimization; a rejected buffer is transferred unregistered.
    return result == NcclResult::kInProgress ? result : NcclResult::kSuccess;
  });
}

WorkPtr NcclProcessGroup::Impl::barrier(const CollectiveRecord& record) {
  constexpr bool kHostWaits = true;
  return issue(
      record, {token_},
      [this](NcclComm comm, CudaStream stream) {
        void* const data = token_.data();
        return api.all_reduce(data, data, 1, DType::kInt32, NcclReduceOp::kMax, comm, stream);
      },
      kHostWaits);
}

void NcclProcessGroup::Impl::shutdown() {
  CollectiveRecord record;
  record.group = options_.name;
  record.op = OpType::kBarrier;
  record.dtype = DType::kUInt8;
  record.sequence = recorder_->total_scheduled();
  record.label.phase = Phase::kShutdown;
  record.label.what = "waiting for all ranks to finish";

  {
    // Bounded: every work in flight has a deadline.
    std::unique_lock lock(job_->mutex);
    job_->changed.wait(lock, [&] { return pending_.empty() || job_->failed(); });
  }
  if (signatures_) signatures_->finish();
  if (!is_subgroup_) job_->shutdown(record);
}

void NcclProcessGroup::Impl::end() {
  if (!is_subgroup_) {
    device_.set_interruption({});
    // A subgroup does not announce the job's end.
    if (!job_->all_ended() && !job_->failed()) {
      job_->fail({job_->rank(), ErrorCode::kRankDied, "left the job without finishing", {}});
    }
  }
  {
    std::unique_lock lock(job_->mutex);
    stopping_ = true;
    job_->changed.notify_all();
    if (!job_->changed.wait_for(lock, kAbortPatience, [&] { return watch_ended_; })) {
      lock.unlock();
      watchdog_.detach();  // hangs in NCCL's abort; it keeps this object alive
      return;
    }
  }
  watchdog_.join();
  signatures_.reset();
  if (!is_subgroup_) job_->stop_watching();
  for (const auto& [buffer, handle] : registered_) {
    if (handle == nullptr || communicator_->aborted()) continue;
    communicator_->enqueue("ncclCommDeregister", [&, registration = handle](NcclComm comm) {
      static_cast<void>(api.deregister_buffer(comm, registration));
      return NcclResult::kSuccess;
    });
  }
  communicator_->close();
  device_.api().destroy_stream(stream_);
}

}  // namespace gradsync
