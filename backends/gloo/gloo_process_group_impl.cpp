#include "gradsync/backends/gloo/gloo_process_group_impl.hpp"

#include <algorithm>
#include <csignal>
#include <exception>

#include <fmt/format.h>

#include "gradsync/backends/gloo/gloo_connect.hpp"
#include "gradsync/backends/gloo/gloo_messages.hpp"
#include "gradsync/backends/store/stable_hash.hpp"
#include "gradsync/comm/signature.hpp"

namespace gradsync {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Delay between finding a mismatch and ending the job. The other ranks arrive in this time, and
/// their records are the votes on which rank is the odd one out.
constexpr Seconds kVoteTime{0.2};

milliseconds to_milliseconds(Seconds timeout) {
  return std::max(milliseconds(1), std::chrono::ceil<milliseconds>(timeout));
}

/// The tag under which the messages of a collective match. Concurrent collectives differ in the
/// upper bits, whatever their hashes; mismatched collectives of different ranks differ in the lower
/// bits.
std::uint32_t message_tag(std::int64_t sequence, const std::string& signature_text) {
  return static_cast<std::uint32_t>(sequence & 0xff) << 24 |
         (stable_hash(signature_text) & 0x00ffffffu);
}

}  // namespace

GlooProcessGroup::Impl::Impl(GlooProcessGroup& owner, const RankEnvironment& environment,
                             std::shared_ptr<Store> job_store, const Options& chosen,
                             std::vector<int> group_members)
    : group(owner),
      env(environment),
      store(std::move(job_store)),
      options(chosen),
      members(std::move(group_members)) {
  // Gloo writes to sockets without MSG_NOSIGNAL, so a lost peer would kill this process.
  std::signal(SIGPIPE, SIG_IGN);
  const auto begin = steady_clock::now();
  const std::string prefix = "group/" + options.name;
  PrefixStore group_store(prefix, store);
  join_all_ranks(group_store, env.rank, env.world_size, options.timeout);
  const Seconds left = options.timeout - Seconds(steady_clock::now() - begin);
  connected =
      connect_gloo(env, store, prefix + "/gloo", options.interface, left, options.wrong_address);
  if (env.world_size > 1) signatures = std::make_unique<SignatureExchange>(connected, registry);

  watcher =
      std::make_unique<EndWatcher>(env, options.timeout, [this](const std::optional<Failure>& end) {
        if (end) return stop(*end);
        const std::lock_guard lock(mutex);
        all_ended = true;
        changed.notify_all();
      });
  for (int i = 0; i < options.threads; ++i)
    threads.emplace_back([this] { run_thread(collectives); });
}

GlooProcessGroup::Impl::~Impl() {
  bool ended_well = false;
  {
    const std::lock_guard lock(mutex);
    // A subgroup does not announce the job's end.
    ended_well = all_ended || first_failure.has_value() || !members.empty();
  }
  if (!ended_well) {
    fail({self(), ErrorCode::kRankDied, "left the job without finishing", {}});
  }
  {
    const std::lock_guard lock(mutex);
    stopping = true;
    changed.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
  watcher.reset();
}

std::optional<Failure> GlooProcessGroup::Impl::failure() {
  const std::lock_guard lock(mutex);
  return first_failure;
}

WorkPtr GlooProcessGroup::Impl::issue(const CollectiveRecord& record,
                                      GlooWork::Operation operation) {
  auto work = std::make_shared<GlooWork>(record, std::move(operation));
  const std::lock_guard lock(mutex);
  if (is_point_to_point(record.op)) {
    const auto [channel, is_new] = channels.try_emplace(record.group);
    Lane& lane = channel->second;
    lane.queue.push_back(work);
    if (is_new) threads.emplace_back([this, &lane] { run_thread(lane); });
  } else {
    collectives.queue.push_back(work);
  }
  changed.notify_all();
  return work;
}

bool GlooProcessGroup::Impl::is_idle() const {
  const bool no_messages =
      std::ranges::all_of(channels, [](const auto& named) { return named.second.queue.empty(); });
  return running == 0 && collectives.queue.empty() && no_messages;
}

void GlooProcessGroup::Impl::run_thread(Lane& lane) {
  std::deque<std::shared_ptr<GlooWork>>& queue = lane.queue;
  while (true) {
    std::shared_ptr<GlooWork> work;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return stopping || !queue.empty(); });
      if (queue.empty()) return;
      work = std::move(queue.front());
      queue.pop_front();
      ++running;
    }
    run(*work);
    const std::lock_guard lock(mutex);
    --running;
    changed.notify_all();
  }
}

void GlooProcessGroup::Impl::run(GlooWork& work) {
  const CollectiveRecord& record = work.record();
  FlightRecorder& recorder = group.flight_recorder();
  std::optional<Failure> end = failure();
  if (!end) {
    recorder.start(record.group, record.sequence, group.clock().now());
    try {
      transfer(work);
      recorder.complete(record.group, record.sequence, group.clock().now());
      return work.finish(std::nullopt);
    } catch (const TransferError& e) {
      end = diagnose(record, e);
    } catch (const Error& e) {
      end = fail({self(), e.code(), e.what(), {}});
    } catch (const std::exception& e) {
      // E.g. Gloo's own checks (EnforceNotMet); after a failure its pairs may be closed.
      end = failure();
      if (!end) end = fail({self(), ErrorCode::kInternal, e.what(), {}});
    }
  }
  CommError error = error_for(*end, self(), record);
  recorder.fail(record.group, record.sequence, group.clock().now(), error.cause());
  work.finish(std::move(error));
}

void GlooProcessGroup::Impl::transfer(const GlooWork& work) {
  const CollectiveRecord& record = work.record();
  const auto timeout = to_milliseconds(options.timeout);
  const auto context =
      make_abortable_context(connected, registry, GlooDeadline(steady_clock::now() + timeout));
  const std::string mine = signature(record);
  if (is_point_to_point(record.op)) {
    if (const auto theirs = exchange_with_peer(context, record, mine)) {
      end_as_desync(
          describe_mismatch(record.sequence, job_rank(record.root), *theirs, self(), mine));
    }
  } else if (signatures) {
    // No rank moves data before its left neighbor has confirmed that it is at the same collective.
    // A more distant rank may be at another one; its messages have a different tag and match no
    // buffer here.
    if (const auto theirs = signatures->exchange(record.sequence, mine, timeout)) {
      end_as_desync(describe_mismatch(record.sequence, job_rank(signatures->left_neighbour()),
                                      *theirs, self(), mine));
    }
  }
  const std::uint32_t tag = message_tag(record.sequence, mine);
  if (record.op == OpType::kAlltoall) {
    if (const auto wrong = find_split_mismatch(context, tag, *record.splits)) {
      const auto [sender, sent, expected] = *wrong;
      end_as_desync(describe_split_mismatch(record, job_rank(sender), sent, self(), expected));
    }
  }
  work.operation()(context, tag);
}

void GlooProcessGroup::Impl::end_as_desync(const std::string& cause) {
  wait_for_failure_elsewhere(kVoteTime);
  throw Error(ErrorCode::kDesync, cause);
}

}  // namespace gradsync
