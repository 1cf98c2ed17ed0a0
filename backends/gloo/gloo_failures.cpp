// How a Gloo group ends: what a failed transfer means, who is told, and the orderly shutdown.

#include <exception>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gradsync/backends/gloo/gloo_process_group_impl.hpp"

namespace gradsync {
namespace {

/// Timeout of store calls that publish a failure: short, because the job is ending.
constexpr Seconds kStoreTimeout{5};
/// How long a rank whose neighbor vanished waits for an explanation (from the launcher, which sees
/// the signal, or from the neighbor, which publishes before it closes its connections).
constexpr Seconds kExplanationTime{0.3};
/// Extra time for a rank in shutdown, so that ranks blocked in a collective time out first: their
/// error says more.
constexpr Seconds kShutdownExtra{1};

}  // namespace

Failure GlooProcessGroup::Impl::diagnose(const CollectiveRecord& record, const TransferError& e) {
  if (auto known = failure()) return *known;
  if (e.reason == TransferError::Reason::kTimeout) {
    return fail({self(),
                 ErrorCode::kTimeout,
                 fmt::format("timed out after {} in {} #{}, {} (waiting for rank {})",
                             format_duration(options.timeout), to_string(record.op),
                             record.sequence, describe(record.label), job_rank(e.peer)),
                 {}});
  }
  // A connection was closed. Ranks publish a failure before they close, so either there is one, or
  // the peer's process died without reporting.
  if (auto known = wait_for_failure_elsewhere(kExplanationTime)) return *known;
  const std::vector<int> peers = closed_peers();
  if (peers.empty()) return fail({self(), ErrorCode::kInternal, e.what(), {}});
  return fail({job_rank(peers.front()),
               ErrorCode::kRankDied,
               fmt::format("died (it closed its connection to rank {} without a word)", self()),
               {}});
}

std::optional<Failure> GlooProcessGroup::Impl::wait_for_failure_elsewhere(Seconds timeout) {
  std::unique_lock lock(mutex);
  changed.wait_for(lock, timeout, [&] { return first_failure.has_value(); });
  return first_failure;
}

std::vector<int> GlooProcessGroup::Impl::closed_peers() {
  // A pair with a broken connection refuses to send. On the intact ones the probe only announces an
  // empty message that is never received; the context is about to be closed.
  constexpr std::uint64_t kProbeSlot = std::uint64_t{1} << 63;
  std::vector<int> closed;
  const auto probe = connected->createUnboundBuffer(nullptr, 0);
  for (int peer = 0; peer < env.world_size; ++peer) {
    if (peer == env.rank) continue;
    try {
      probe->send(peer, kProbeSlot);
    } catch (const std::exception&) {
      closed.push_back(peer);
    }
  }
  return closed;
}

Failure GlooProcessGroup::Impl::fail(const Failure& failure_here) {
  Failure holding = failure_here;
  try {
    // Publish before closing: whoever sees the connection close can then find the reason.
    holding = publish_failure(*store, failure_here, kStoreTimeout);
  } catch (const Error&) {
    // The store is gone; the other ranks' watchers notice that themselves.
  }
  stop(holding);
  return *failure();
}

void GlooProcessGroup::Impl::stop(const Failure& failure_of_job) {
  {
    const std::lock_guard lock(mutex);
    if (first_failure) return;
    first_failure = failure_of_job;
    changed.notify_all();
  }
  registry->abort_all();
  connected->closeConnections();
}

void GlooProcessGroup::Impl::shutdown() {
  CollectiveRecord record;
  record.group = group.name();
  record.op = OpType::kBarrier;
  record.dtype = DType::kUInt8;
  record.sequence = group.flight_recorder().total_scheduled();
  record.label.phase = Phase::kShutdown;
  record.label.what = "waiting for all ranks to finish";

  std::unique_lock lock(mutex);
  // Bounded: every work in flight has a deadline.
  changed.wait(lock, [&] { return is_idle(); });
  if (!first_failure) {
    lock.unlock();
    announce_end(*store, env.rank, env.world_size, options.timeout);
    lock.lock();
  }
  const bool ended = changed.wait_for(lock, options.timeout + kShutdownExtra,
                                      [&] { return all_ended || first_failure.has_value(); });
  if (first_failure) throw error_for(*first_failure, self(), record);
  if (ended) return;
  lock.unlock();
  const std::vector<int> missing = ranks_not_ended(*store, env.world_size, kStoreTimeout);
  const Failure holding =
      fail({self(),
            ErrorCode::kTimeout,
            fmt::format("timed out after {} in shutdown: this rank is done, rank {} {} not",
                        format_duration(options.timeout), fmt::join(missing, ", "),
                        missing.size() == 1 ? "is" : "are"),
            {}});
  throw error_for(holding, env.rank, record);
}

}  // namespace gradsync
