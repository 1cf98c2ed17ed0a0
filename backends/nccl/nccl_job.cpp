#include "gradsync/backends/nccl/nccl_job.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gradsync {
namespace {

/// Timeout of store calls that publish a failure: short, because the job is ending.
constexpr Seconds kStoreTimeout{5};
/// Time for the watchdogs to check once more what the GPU has finished.
constexpr Seconds kLastLook{5};
/// After a failure: how long a rank that waits for its GPU, but not for a collective, goes on
/// waiting.
constexpr Seconds kLastWait{0.5};
/// Extra time for a rank in shutdown, so that ranks blocked in a collective time out first: their
/// error says more.
constexpr Seconds kShutdownExtra{1};

}  // namespace

NcclJob::NcclJob(const RankEnvironment& environment, std::shared_ptr<Store> store, Seconds timeout)
    : env_(environment), store_(std::move(store)), timeout_(timeout) {}

void NcclJob::watch_for_end() {
  end_watcher_ =
      std::make_unique<EndWatcher>(env_, timeout_, [this](const std::optional<Failure>& end) {
        if (end) return stop(*end);
        const std::lock_guard lock(mutex);
        all_ended_ = true;
        changed.notify_all();
      });
}

Failure NcclJob::fail(const Failure& failure) {
  Failure holding = failure;
  try {
    holding = publish_failure(*store_, failure, kStoreTimeout);
  } catch (const Error&) {
    // The store is gone; the other ranks' watchers notice that themselves.
  }
  stop(holding);
  return *failure_->get();
}

void NcclJob::stop(const Failure& failure) {
  if (!failure_->set(failure)) return;
  const std::lock_guard lock(mutex);
  failed_at_ = std::chrono::steady_clock::now();
  changed.notify_all();
}

bool NcclJob::all_ended() {
  const std::lock_guard lock(mutex);
  return all_ended_;
}

bool NcclJob::wait_for_failure(Seconds timeout) {
  std::unique_lock lock(mutex);
  return changed.wait_for(lock, timeout, [&] { return failed(); });
}

void NcclJob::wait_for_failure() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return failed(); });
}

void NcclJob::host_is_at(const CollectiveRecord& record) {
  const std::lock_guard lock(mutex);
  host_record_ = record;
}

void NcclJob::throw_if_failed() {
  const auto failure = failure_->get();
  if (!failure) return;
  const std::lock_guard lock(mutex);
  throw error_for(*failure, env_.rank, host_record_);
}

void NcclJob::watchdog_begins() {
  const std::lock_guard lock(mutex);
  ++watchdogs_;
}

void NcclJob::watchdog_ends(const std::optional<CollectiveRecord>& unfinished) {
  const std::lock_guard lock(mutex);
  --watchdogs_;
  if (unfinished && !unfinished_) unfinished_ = unfinished;
  changed.notify_all();
}

void NcclJob::check_device_wait() {
  if (!failed()) return;
  std::unique_lock lock(mutex);
  changed.wait_for(lock, kLastLook, [&] { return watchdogs_ == 0; });
  const Failure failure = *failure_->get();
  if (unfinished_) throw error_for(failure, env_.rank, *unfinished_);
  const auto since = std::chrono::steady_clock::now() - failed_at_;
  if (since > kLastWait) throw error_for(failure, env_.rank, host_record_);
}

void NcclJob::shutdown(const CollectiveRecord& record) {
  if (!failed()) announce_end(*store_, env_.rank, env_.world_size, timeout_);
  bool ended = false;
  {
    std::unique_lock lock(mutex);
    ended =
        changed.wait_for(lock, timeout_ + kShutdownExtra, [&] { return all_ended_ || failed(); });
  }
  if (const auto failure = failure_->get()) throw error_for(*failure, env_.rank, record);
  if (ended) return;
  const std::vector<int> missing = ranks_not_ended(*store_, env_.world_size, kStoreTimeout);
  const Failure holding =
      fail({env_.rank,
            ErrorCode::kTimeout,
            fmt::format("timed out after {} in shutdown: this rank is done, rank {} {} not",
                        format_duration(timeout_), fmt::join(missing, ", "),
                        missing.size() == 1 ? "is" : "are"),
            {}});
  throw error_for(holding, env_.rank, record);
}

}  // namespace gradsync
