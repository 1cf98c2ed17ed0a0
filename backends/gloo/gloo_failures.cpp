// How a rank of a Gloo group learns why a collective failed, and ends.
#include <exception>
#include <vector>

#include <fmt/format.h>

#include "gradsync/backends/gloo/gloo_process_group_impl.hpp"

namespace gradsync {
namespace {

/// How long a rank whose neighbor vanished waits for an explanation (from the launcher, which sees
/// the signal, or from the neighbor, which publishes before it closes its connections).
constexpr Seconds kExplanationTime{0.3};

}  // namespace

std::optional<Failure> GlooProcessGroup::Impl::failure() {
  const std::lock_guard lock(mutex);
  return first_failure;
}

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

}  // namespace gradsync
