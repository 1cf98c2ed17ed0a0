// The watchdog of an NCCL group: records starts and ends, and finds collectives that take too long
// and errors of NCCL.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "gradsync/backends/nccl/nccl_process_group_impl.hpp"

namespace gradsync {
namespace {

/// How long a rank with a broken network waits for an explanation (from the launcher, which sees
/// the signal, or from the other rank).
constexpr Seconds kExplanationTime{0.3};

}  // namespace

void NcclProcessGroup::Impl::watch() {
  device_.api().set_device(device_.ordinal());
  std::unique_lock lock(job_->mutex);
  while (!job_->failed() && !(stopping_ && pending_.empty())) {
    job_->changed.wait_for(lock, stopping_ ? Seconds(0.001) : options_.watch_interval);
    if (job_->failed()) break;
    try {
      look_at_works(lock);
      lock.unlock();
      look_at_nccl();
      lock.lock();
    } catch (const Error& e) {  // from CUDA: a kernel fault, a lost device
      if (lock.owns_lock()) lock.unlock();
      job_->fail({job_->rank(), e.code(), e.what(), {}});
      lock.lock();
    }
  }
  std::deque<std::shared_ptr<NcclWork>> ended;
  if (job_->failed()) {
    try {
      note_progress();  // works that the GPU has finished did not fail
    } catch (const Error&) {
      // The GPU is lost, so all works have failed.
    }
    ended = end_works();
  }
  lock.unlock();
  job_->watchdog_ends(ended.empty() ? std::nullopt : std::optional(ended.front()->record()));
  if (job_->failed()) {
    // The ranks' threads already know (GroupFailure). Aborting the communicator ends the spinning
    // kernels, and with them every wait for the GPU in this process.
    communicator_->abort();
    // Release the tensors only now that nothing writes to their memory.
    for (const auto& work : ended) work->release_tensors();
  }
  lock.lock();
  watch_ended_ = true;
  job_->changed.notify_all();
}

/// Records starts and ends in the flight recorder. Requires the job's mutex.
void NcclProcessGroup::Impl::note_progress() {
  CudaApi& cuda = device_.api();
  while (!pending_.empty()) {
    NcclWork& work = *pending_.front();
    const CollectiveRecord& record = work.record();
    if (!head_started_ && cuda.is_done(work.begin().get())) {
      head_started_ = true;
      const Seconds begin = std::max(timeline_->time_of(work.begin()), record.issued);
      recorder_->start(record.group, record.sequence, begin);
    }
    if (!head_started_ || !cuda.is_done(work.end().get())) return;
    recorder_->complete(record.group, record.sequence, timeline_->time_of(work.end()));
    work.complete();
    pending_.pop_front();
    head_started_ = false;
    head_since_ = clock_.now();
    job_->changed.notify_all();
  }
}

/// Fails a collective that takes too long.
void NcclProcessGroup::Impl::look_at_works(std::unique_lock<std::mutex>& lock) {
  note_progress();
  if (pending_.empty()) return;
  const std::shared_ptr<NcclWork> head = pending_.front();
  const bool is_late =
      clock_.now() - std::max(head_since_, head->record().issued) > options_.timeout;
  const std::string cause = is_late ? describe_timeout(head->record(), head_started_) : "";
  lock.unlock();
  job_->host_is_at(head->record());
  if (is_late) job_->fail({job_->rank(), ErrorCode::kTimeout, cause, {}});
  lock.lock();
}

std::string NcclProcessGroup::Impl::describe_timeout(const CollectiveRecord& record,
                                                     bool started) const {
  return fmt::format("timed out after {} in {} #{}, {} ({})", format_duration(options_.timeout),
                     to_string(record.op), record.sequence, describe(record.label),
                     started ? "waiting for the other ranks"
                             : "not started: the GPU is still at the work before it");
}

/// Handles errors that NCCL detects itself: a lost peer process or network.
void NcclProcessGroup::Impl::look_at_nccl() {
  const NcclResult error = communicator_->async_error();
  if (error == NcclResult::kSuccess || error == NcclResult::kInProgress) return;
  const std::string what = "NCCL reports " + communicator_->describe(error);
  if (error == NcclResult::kRemoteError) {
    if (job_->wait_for_failure(kExplanationTime)) return;
    job_->fail({-1,
                ErrorCode::kRankDied,
                fmt::format("a peer of rank {} is gone: {}", job_->rank(), what),
                {}});
    return;
  }
  job_->fail({job_->rank(), ErrorCode::kInternal, what, {}});
}

/// Fails the unfinished works with the job's failure. Requires the job's mutex.
std::deque<std::shared_ptr<NcclWork>> NcclProcessGroup::Impl::end_works() {
  const Failure failure = *job_->failure()->get();
  for (const auto& work : pending_) {
    const CollectiveRecord& record = work->record();
    recorder_->fail(record.group, record.sequence, clock_.now(),
                    error_for(failure, job_->rank(), record).cause());
  }
  return std::exchange(pending_, {});
}

}  // namespace gradsync
