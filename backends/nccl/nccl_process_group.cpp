#include "backends/nccl/nccl_process_group.hpp"

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/nccl/nccl_communicator.hpp"
#include "backends/nccl/nccl_rendezvous.hpp"
#include "backends/nccl/nccl_work.hpp"
#include "backends/store/end_watcher.hpp"

namespace gradsync {
namespace {

/// For the store's answers when a failure is published: the job is ending, nobody waits for long.
constexpr Seconds kStoreTimeout{5};
/// How long a rank whose network broke waits for someone who knows why (the launcher, which sees
/// the signal, or the rank itself).
constexpr Seconds kExplanationTime{0.3};
/// A rank in shutdown lets those that wait in a collective time out first: their error says more.
constexpr Seconds kShutdownExtra{1};
/// NCCL's abort waits for its own threads; one that hangs must not keep the process from ending.
constexpr Seconds kAbortPatience{10};
/// Smaller buffers gain nothing from registration.
constexpr Bytes kRegisterFrom = Bytes{1} << 20;

NcclReduceOp to_nccl(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return NcclReduceOp::kSum;
    case ReduceOp::kMax:
      return NcclReduceOp::kMax;
    case ReduceOp::kMin:
      return NcclReduceOp::kMin;
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

class NcclProcessGroup::Impl {
 public:
  Impl(Clock& clock, const RankEnvironment& environment, const JobStore& job, CudaDevice& device,
       NcclApi& api, std::shared_ptr<FlightRecorder> recorder, const Options& options);

  /// Puts a collective into the communication stream. `call(comm, stream)` makes NCCL's call.
  template <typename Call>
  WorkPtr issue(const CollectiveRecord& record, std::vector<Tensor> tensors, bool host_waits,
                Call call);
  WorkPtr allreduce(Tensor tensor, ReduceOp op, const CollectiveRecord& record);
  WorkPtr barrier(const CollectiveRecord& record);
  void shutdown();
  Failure fail(const Failure& failure);
  /// The rank is leaving.
  void end();

  /// The watchdog's thread; holds the Impl alive.
  void watch();

  NcclApi& api;

 private:
  void stop(const Failure& failure);
  void throw_if_failed();
  void register_buffer(const Tensor& tensor);

  void look_at_works(std::unique_lock<std::mutex>& lock);
  void look_at_nccl();
  std::deque<std::shared_ptr<NcclWork>> end_works();
  std::string describe_timeout(const CollectiveRecord& record, bool started) const;

  const RankEnvironment env_;
  const std::shared_ptr<Store> store_;
  CudaDevice& device_;
  const Options options_;

  const std::shared_ptr<GroupFailure> failure_ = std::make_shared<GroupFailure>();
  Clock& clock_;
  const std::shared_ptr<FlightRecorder> recorder_;
  CudaStream stream_ = nullptr;
  std::unique_ptr<NcclCommunicator> communicator_;
  Tensor token_;  // what a barrier moves
  std::map<const void*, void*> registered_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::deque<std::shared_ptr<NcclWork>> pending_;  // in the order of the stream
  bool head_started_ = false;
  Seconds head_since_{0};  // at the head of the queue, in the stream
  bool stopping_ = false;
  bool all_ended_ = false;
  bool watch_ended_ = false;
  CollectiveRecord last_record_;  // of the collective that the host is at

  std::unique_ptr<EventTimeline> timeline_;  // the watchdog's
  std::unique_ptr<EndWatcher> end_watcher_;
  std::thread watchdog_;

  friend class NcclProcessGroup;
};

NcclProcessGroup::Impl::Impl(Clock& clock, const RankEnvironment& environment, const JobStore& job,
                             CudaDevice& device, NcclApi& nccl,
                             std::shared_ptr<FlightRecorder> recorder, const Options& options)
    : api(nccl),
      env_(environment),
      store_(job.store),
      device_(device),
      options_(options),
      clock_(clock),
      recorder_(std::move(recorder)) {
  last_record_.group = options_.name;
  last_record_.label.what = "setting up NCCL";
  NcclRendezvous rendezvous(env_, store_, options_.name, options_.timeout);
  try {
    rendezvous.join(api.version(), device_.api().device_info(device_.ordinal()).pci_id);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::kUsage) fail({env_.rank, e.code(), e.what(), {}});
    throw;
  }
  // Only now: before all have joined there is no job whose end could be told.
  end_watcher_ = std::make_unique<EndWatcher>(env_, options_.timeout,
                                              [this](const std::optional<Failure>& end) {
                                                if (end) return stop(*end);
                                                const std::lock_guard lock(mutex_);
                                                all_ended_ = true;
                                                changed_.notify_all();
                                              });
  const NcclUniqueId id = rendezvous.exchange_id(api);
  try {
    communicator_ = std::make_unique<NcclCommunicator>(
        api, id,
        NcclCommunicator::Options{env_.rank, env_.world_size, options_.name,
                                  rendezvous.time_left()},
        [this] { throw_if_failed(); });
  } catch (const CommError&) {
    throw;  // the others have it already
  } catch (const Error& e) {
    throw error_for(fail({env_.rank, e.code(), e.what(), {}}), env_.rank, last_record_);
  }
  stream_ = device_.api().create_stream(true);
  timeline_ = std::make_unique<EventTimeline>(device_.api(), device_.events(), stream_, clock_);
  token_ = Tensor::zeros({1}, DType::kInt32, device_);
  device_.set_interruption([this] { throw_if_failed(); });
}

void NcclProcessGroup::Impl::throw_if_failed() {
  const auto failure = failure_->get();
  if (!failure) return;
  const std::lock_guard lock(mutex_);
  throw error_for(*failure, env_.rank, last_record_);
}

// Collectives
// ------------------------------------------------------------------------------------------------

template <typename Call>
WorkPtr NcclProcessGroup::Impl::issue(const CollectiveRecord& record, std::vector<Tensor> tensors,
                                      bool host_waits, Call call) {
  for (const Tensor& tensor : tensors) {
    if (&tensor.device() != &device_) {
      throw Error(ErrorCode::kMisuse,
                  fmt::format("rank {}: NCCL moves tensors on {} and was given one on {}",
                              env_.rank, device_.name(), tensor.device().name()));
    }
    if (options_.register_buffers) register_buffer(tensor);
  }
  auto work = std::make_shared<NcclWork>(record, env_.rank, device_, host_waits, std::move(tensors),
                                         failure_);
  CudaApi& cuda = device_.api();
  try {
    if (const auto failure = failure_->get()) throw error_for(*failure, env_.rank, record);
    // The collective reads what the compute stream has written: it starts behind all that is in
    // that stream now, and behind nothing that comes later. That is the overlap.
    const EventPtr inputs_ready = take_event(device_.events());
    cuda.record(inputs_ready.get(), device_.compute_stream());
    cuda.wait(stream_, inputs_ready.get());
    cuda.record(work->begin().get(), stream_);
    communicator_->enqueue(to_string(record.op),
                           [&](NcclComm comm) { return call(comm, stream_); });
    cuda.record(work->end().get(), stream_);
  } catch (const Error& e) {
    // Refused, or aborted while it was on its way in; the work's wait says which.
    if (!failure_->failed()) fail({env_.rank, e.code(), e.what(), {}});
  }
  const std::lock_guard lock(mutex_);
  if (pending_.empty()) {
    head_since_ = clock_.now();
    head_started_ = false;
    last_record_ = record;
  }
  // After a failure the watchdog looks at no work any more.
  if (const auto failure = failure_->get()) {
    recorder_->fail(record.group, record.sequence, clock_.now(),
                    error_for(*failure, env_.rank, record).cause());
    return work;
  }
  pending_.push_back(work);
  return work;
}

void NcclProcessGroup::Impl::register_buffer(const Tensor& tensor) {
  if (tensor.nbytes() < kRegisterFrom || !api.can_register()) return;
  const auto [entry, is_new] = registered_.try_emplace(tensor.data(), nullptr);
  if (!is_new) return;
  communicator_->enqueue("ncclCommRegister", [&](NcclComm comm) {
    const NcclResult result = api.register_buffer(
        comm, tensor.data(), static_cast<std::size_t>(tensor.nbytes()), entry->second);
    // Registration only makes things faster; a buffer that NCCL will not have is moved as before.
    return result == NcclResult::kInProgress ? result : NcclResult::kSuccess;
  });
}

WorkPtr NcclProcessGroup::Impl::allreduce(Tensor tensor, ReduceOp op,
                                          const CollectiveRecord& record) {
  void* const data = tensor.data();
  const std::size_t count = count_of(tensor);
  const DType dtype = tensor.dtype();
  return issue(record, {std::move(tensor)}, false, [=, this](NcclComm comm, CudaStream stream) {
    return api.all_reduce(data, data, count, dtype, to_nccl(op), comm, stream);
  });
}

WorkPtr NcclProcessGroup::Impl::barrier(const CollectiveRecord& record) {
  return issue(record, {token_}, true, [this](NcclComm comm, CudaStream stream) {
    void* const data = token_.data();
    return api.all_reduce(data, data, 1, DType::kInt32, NcclReduceOp::kMax, comm, stream);
  });
}

// The watchdog
// ------------------------------------------------------------------------------------------------

void NcclProcessGroup::Impl::watch() {
  device_.api().set_device(device_.ordinal());
  std::unique_lock lock(mutex_);
  while (!failure_->failed() && !(stopping_ && pending_.empty())) {
    changed_.wait_for(lock, stopping_ ? Seconds(0.001) : options_.watch_interval);
    if (failure_->failed()) break;
    try {
      look_at_works(lock);
      lock.unlock();
      look_at_nccl();
      lock.lock();
    } catch (const Error& e) {  // of CUDA: a kernel's fault, a lost device
      if (lock.owns_lock()) lock.unlock();
      fail({env_.rank, e.code(), e.what(), {}});
      lock.lock();
    }
  }
  if (failure_->failed()) {
    // The ranks' threads know already (GroupFailure). Kernels that wait for others end with the
    // communicator, and with them whatever in this process waits for the GPU.
    lock.unlock();
    const auto ended = end_works();
    communicator_->abort();
    // Only now does nothing write to their memory any more.
    for (const auto& work : ended) work->release_tensors();
    lock.lock();
  }
  watch_ended_ = true;
  changed_.notify_all();
}

/// Enters what has happened into the flight recorder, and ends a collective that takes too long.
void NcclProcessGroup::Impl::look_at_works(std::unique_lock<std::mutex>& lock) {
  CudaApi& cuda = device_.api();
  while (!pending_.empty()) {
    NcclWork& work = *pending_.front();
    const CollectiveRecord& record = work.record();
    if (!head_started_ && cuda.is_done(work.begin().get())) {
      head_started_ = true;
      const Seconds begin = std::max(timeline_->time_of(work.begin()), record.issued);
      recorder_->start(record.group, record.sequence, begin);
    }
    if (!head_started_ || !cuda.is_done(work.end().get())) break;
    recorder_->complete(record.group, record.sequence, timeline_->time_of(work.end()));
    work.complete();
    pending_.pop_front();
    head_started_ = false;
    head_since_ = clock_.now();
    if (!pending_.empty()) last_record_ = pending_.front()->record();
    changed_.notify_all();
  }
  if (pending_.empty()) return;
  if (clock_.now() - std::max(head_since_, pending_.front()->record().issued) <= options_.timeout) {
    return;
  }
  const CollectiveRecord& record = pending_.front()->record();
  const Failure timeout{
      env_.rank, ErrorCode::kTimeout, describe_timeout(record, head_started_), {}};
  lock.unlock();
  fail(timeout);
  lock.lock();
}

std::string NcclProcessGroup::Impl::describe_timeout(const CollectiveRecord& record,
                                                     bool started) const {
  return fmt::format("timed out after {} in {} #{}, {} ({})", format_duration(options_.timeout),
                     to_string(record.op), record.sequence, describe(record.label),
                     started ? "waiting for the other ranks"
                             : "not started: the GPU is still at the work before it");
}

/// Errors that NCCL notices by itself: a peer's process or a network that is gone.
void NcclProcessGroup::Impl::look_at_nccl() {
  const NcclResult error = communicator_->async_error();
  if (error == NcclResult::kSuccess || error == NcclResult::kInProgress) return;
  const std::string what = "NCCL reports " + communicator_->describe(error);
  if (error == NcclResult::kRemoteError) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kExplanationTime, [&] { return failure_->failed(); });
    if (failure_->failed()) return;
    lock.unlock();
    fail({-1,
          ErrorCode::kRankDied,
          fmt::format("a peer of rank {} is gone: {}", env_.rank, what),
          {}});
    return;
  }
  fail({env_.rank, ErrorCode::kInternal, what, {}});
}

/// The works that have not ended fail with the job.
std::deque<std::shared_ptr<NcclWork>> NcclProcessGroup::Impl::end_works() {
  const std::lock_guard lock(mutex_);
  const Failure failure = *failure_->get();
  if (!pending_.empty()) last_record_ = pending_.front()->record();
  for (const auto& work : pending_) {
    const CollectiveRecord& record = work->record();
    recorder_->fail(record.group, record.sequence, clock_.now(),
                    error_for(failure, env_.rank, record).cause());
  }
  return std::exchange(pending_, {});
}

Failure NcclProcessGroup::Impl::fail(const Failure& failure) {
  Failure holding = failure;
  try {
    holding = publish_failure(*store_, failure, kStoreTimeout);
  } catch (const Error&) {
    // The store is gone; the other ranks' watchers notice that themselves.
  }
  stop(holding);
  return *failure_->get();
}

void NcclProcessGroup::Impl::stop(const Failure& failure) {
  if (!failure_->set(failure)) return;
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

// The end
// ------------------------------------------------------------------------------------------------

void NcclProcessGroup::Impl::shutdown() {
  CollectiveRecord record;
  record.group = options_.name;
  record.op = OpType::kBarrier;
  record.dtype = DType::kUInt8;
  record.sequence = recorder_->total_scheduled();
  record.label.phase = Phase::kShutdown;
  record.label.what = "waiting for all ranks to finish";

  std::unique_lock lock(mutex_);
  // Bounded by the deadlines of the works that are still under way.
  changed_.wait(lock, [&] { return pending_.empty() || failure_->failed(); });
  if (!failure_->failed()) {
    lock.unlock();
    announce_end(*store_, env_.rank, env_.world_size, options_.timeout);
    lock.lock();
  }
  const bool ended = changed_.wait_for(lock, options_.timeout + kShutdownExtra,
                                       [&] { return all_ended_ || failure_->failed(); });
  if (const auto failure = failure_->get()) throw error_for(*failure, env_.rank, record);
  if (ended) return;
  lock.unlock();
  const std::vector<int> missing = ranks_not_ended(*store_, env_.world_size, kStoreTimeout);
  const Failure holding =
      fail({env_.rank,
            ErrorCode::kTimeout,
            fmt::format("timed out after {} in shutdown: this rank is done, rank {} {} not",
                        format_duration(options_.timeout), fmt::join(missing, ", "),
                        missing.size() == 1 ? "is" : "are"),
            {}});
  throw error_for(holding, env_.rank, record);
}

void NcclProcessGroup::Impl::end() {
  device_.set_interruption({});
  {
    std::unique_lock lock(mutex_);
    if (!all_ended_ && !failure_->failed()) {
      lock.unlock();
      fail({env_.rank, ErrorCode::kRankDied, "left the job without finishing", {}});
      lock.lock();
    }
    stopping_ = true;
    changed_.notify_all();
    if (changed_.wait_for(lock, kAbortPatience, [&] { return watch_ended_; })) {
      lock.unlock();
      watchdog_.join();
    } else {
      watchdog_
          .detach();  // inside an abort of NCCL's that does not end; it keeps this object alive
      return;
    }
  }
  end_watcher_.reset();
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

NcclProcessGroup::NcclProcessGroup(const RankEnvironment& environment, const JobStore& job,
                                   CudaDevice& device, NcclApi& api, Clock& clock,
                                   const Options& options)
    : NcclProcessGroup(environment, job, device, api, clock, checked(options),
                       std::make_shared<FlightRecorder>(options.flight_recorder_size)) {}

NcclProcessGroup::NcclProcessGroup(const RankEnvironment& environment, const JobStore& job,
                                   CudaDevice& device, NcclApi& api, Clock& clock,
                                   const Options& options,
                                   const std::shared_ptr<FlightRecorder>& recorder)
    : ProcessGroup(environment.rank, environment.world_size, options.name, clock, recorder),
      impl_(std::make_shared<Impl>(clock, environment, job, device, api, recorder, options)) {
  impl_->watchdog_ = std::thread([impl = impl_] { impl->watch(); });
}

NcclProcessGroup::~NcclProcessGroup() {
  impl_->end();
}

void NcclProcessGroup::shutdown() {
  impl_->shutdown();
}

void NcclProcessGroup::abort(ErrorCode code, const std::string& cause) {
  impl_->fail({rank(), code, cause, {}});
}

WorkPtr NcclProcessGroup::do_allreduce(Tensor tensor, ReduceOp op, const CollectiveRecord& record) {
  return impl_->allreduce(std::move(tensor), op, record);
}

WorkPtr NcclProcessGroup::do_broadcast(Tensor tensor, int root, const CollectiveRecord& record) {
  void* const data = tensor.data();
  const std::size_t count = count_of(tensor);
  const DType dtype = tensor.dtype();
  return impl_->issue(record, {std::move(tensor)}, false,
                      [=, &api = impl_->api](NcclComm comm, CudaStream stream) {
                        return api.broadcast(data, data, count, dtype, root, comm, stream);
                      });
}

WorkPtr NcclProcessGroup::do_allgather(Tensor output, Tensor input,
                                       const CollectiveRecord& record) {
  const void* const send = input.data();
  void* const receive = output.data();
  const std::size_t count = count_of(input);
  const DType dtype = input.dtype();
  return impl_->issue(record, {std::move(output), std::move(input)}, false,
                      [=, &api = impl_->api](NcclComm comm, CudaStream stream) {
                        return api.all_gather(send, receive, count, dtype, comm, stream);
                      });
}

WorkPtr NcclProcessGroup::do_barrier(const CollectiveRecord& record) {
  return impl_->barrier(record);
}

}  // namespace gradsync
