#include "gradsync/backends/gloo/gloo_process_group.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gradsync/backends/gloo/abortable_buffers.hpp"
#include "gradsync/backends/gloo/gloo_collectives.hpp"
#include "gradsync/backends/gloo/gloo_connect.hpp"
#include "gradsync/backends/gloo/gloo_process_group_impl.hpp"
#include "gradsync/backends/gloo/gloo_work.hpp"
#include "gradsync/backends/gloo/signature_exchange.hpp"
#include "gradsync/backends/store/end_watcher.hpp"
#include "gradsync/backends/store/stable_hash.hpp"
#include "gradsync/comm/signature.hpp"

namespace gradsync {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Delay between finding a mismatch and ending the job. The other ranks arrive in this time, and
/// their records are the votes on which rank is the odd one out.
constexpr Seconds kVoteTime{0.2};
/// Extra time for a rank in shutdown, so that ranks blocked in a collective time out first: their
/// error says more.
constexpr Seconds kShutdownExtra{1};

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

const GlooProcessGroup::Options& checked(const GlooProcessGroup::Options& options) {
  if (options.timeout <= Seconds(0)) {
    throw Error(ErrorCode::kUsage, "gloo: the timeout must be positive");
  }
  if (options.threads < 1 || options.threads > 8) {
    throw Error(
        ErrorCode::kUsage,
        fmt::format("gloo: {} communication threads; 1 to 8 are possible", options.threads));
  }
  return options;
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
  for (int i = 0; i < options.threads; ++i) threads.emplace_back([this] { run_thread(); });
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

WorkPtr GlooProcessGroup::Impl::issue(const CollectiveRecord& record,
                                      GlooWork::Operation operation) {
  auto work = std::make_shared<GlooWork>(record, std::move(operation));
  const std::lock_guard lock(mutex);
  queue.push_back(work);
  changed.notify_all();
  return work;
}

void GlooProcessGroup::Impl::run_thread() {
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
  const GlooDeadline deadline = steady_clock::now() + timeout;
  const std::string mine = signature(record);
  if (signatures) {
    // No rank moves data before its left neighbor has confirmed that it is at the same collective.
    // A more distant rank may be at another one; its messages have a different tag and match no
    // buffer here.
    if (const auto theirs = signatures->exchange(record.sequence, mine, timeout)) {
      wait_for_failure_elsewhere(kVoteTime);
      throw Error(ErrorCode::kDesync,
                  describe_mismatch(record.sequence, job_rank(signatures->left_neighbour()),
                                    *theirs, self(), mine));
    }
  }
  work.operation()(make_abortable_context(connected, registry, deadline),
                   message_tag(record.sequence, mine));
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
  changed.wait(lock, [&] { return queue.empty() && running == 0; });
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

GlooProcessGroup::GlooProcessGroup(const RankEnvironment& environment, const JobStore& job,
                                   Clock& clock, const Options& options)
    : ProcessGroup(environment.rank, environment.world_size, options.name, clock,
                   std::make_shared<FlightRecorder>(options.flight_recorder_size)),
      impl_(std::make_unique<Impl>(*this, environment, job.store, checked(options),
                                   std::vector<int>{})) {}

GlooProcessGroup::GlooProcessGroup(const RankEnvironment& environment,
                                   const std::shared_ptr<Store>& store, Clock& clock,
                                   const Options& options, const std::vector<int>& members,
                                   std::shared_ptr<FlightRecorder> recorder)
    : ProcessGroup(environment.rank, environment.world_size, options.name, clock,
                   std::move(recorder)),
      impl_(std::make_unique<Impl>(*this, environment, store, options, members)) {}

GlooProcessGroup::~GlooProcessGroup() = default;

void GlooProcessGroup::shutdown() {
  impl_->shutdown();
}

void GlooProcessGroup::stall() {
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [&] { return impl_->first_failure.has_value(); });
  const Failure& failure = *impl_->first_failure;
  throw Error(failure.code == ErrorCode::kRankDied ? failure.code : ErrorCode::kPeerFailed,
              fmt::format("rank {} had not come back when the job ended: {}", impl_->self(),
                          failure.describe()));
}

std::shared_ptr<ProcessGroup> GlooProcessGroup::do_split(const std::string& name,
                                                         const std::vector<int>& members) {
  RankEnvironment environment = impl_->env;
  const auto self = std::find(members.begin(), members.end(), rank());
  environment.rank = static_cast<int>(self - members.begin());
  environment.world_size = static_cast<int>(members.size());
  Options options = impl_->options;
  options.name = name;
  return std::shared_ptr<ProcessGroup>(new GlooProcessGroup(
      environment, impl_->store, clock(), options, members, shared_flight_recorder()));
}

void GlooProcessGroup::abort(ErrorCode code, const std::string& cause) {
  impl_->fail({rank(), code, cause, {}});
}

WorkPtr GlooProcessGroup::do_allreduce(Tensor tensor, ReduceOp op, const CollectiveRecord& record) {
  if (op == ReduceOp::kAverage) {
    throw Error(ErrorCode::kUsage,
                fmt::format("rank {}: Gloo has no average; divide before the sum", rank()));
  }
  return impl_->issue(record, [tensor = std::move(tensor), op](const auto& context, auto tag) {
    gloo_allreduce(context, tag, tensor, op);
  });
}

WorkPtr GlooProcessGroup::do_broadcast(Tensor tensor, int root, const CollectiveRecord& record) {
  return impl_->issue(record, [tensor = std::move(tensor), root](const auto& context, auto tag) {
    gloo_broadcast(context, tag, tensor, root);
  });
}

WorkPtr GlooProcessGroup::do_allgather(Tensor output, Tensor input,
                                       const CollectiveRecord& record) {
  return impl_->issue(
      record, [output = std::move(output), input = std::move(input)](
                  const auto& context, auto tag) { gloo_allgather(context, tag, output, input); });
}

WorkPtr GlooProcessGroup::do_barrier(const CollectiveRecord& record) {
  return impl_->issue(record, [](const auto& context, auto tag) { gloo_barrier(context, tag); });
}

}  // namespace gradsync
