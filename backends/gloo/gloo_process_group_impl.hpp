#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gradsync/backends/gloo/abortable_buffers.hpp"
#include "gradsync/backends/gloo/gloo_process_group.hpp"
#include "gradsync/backends/gloo/gloo_work.hpp"
#include "gradsync/backends/gloo/signature_exchange.hpp"
#include "gradsync/backends/store/end_watcher.hpp"
#include "gradsync/backends/store/failure.hpp"

namespace gradsync {

/// The state of a GlooProcessGroup. gloo_process_group_impl.cpp runs the works, and
/// gloo_failures.cpp ends them.
struct GlooProcessGroup::Impl {
  Impl(GlooProcessGroup& owner, const RankEnvironment& environment,
       std::shared_ptr<Store> job_store, const Options& chosen, std::vector<int> group_members);
  ~Impl();

  /// Works that run in program order. Collectives have one lane; sends and receives have one for
  /// each peer and direction, so that none of them waits for one of another pair.
  struct Lane {
    std::deque<std::shared_ptr<GlooWork>> queue;
  };

  WorkPtr issue(const CollectiveRecord& record, GlooWork::Operation operation);
  void run_thread(Lane& lane);
  void run(GlooWork& work);
  void transfer(const GlooWork& work);
  [[noreturn]] void end_as_desync(const std::string& cause);
  /// Requires the mutex: nothing is queued or running.
  bool is_idle() const;

  /// Converts a collective's exception to the failure of the job that holds.
  Failure diagnose(const CollectiveRecord& record, const TransferError& e);
  std::optional<Failure> wait_for_failure_elsewhere(Seconds timeout);
  std::vector<int> closed_peers();
  /// Publishes the failure unless there is an earlier one, and ends this rank's works with the one
  /// that holds.
  Failure fail(const Failure& failure);
  /// Ends this rank's works; only the first failure counts.
  void stop(const Failure& failure);
  std::optional<Failure> failure();

  void shutdown();

  /// Converts a rank of this group to its rank in the job.
  int job_rank(int rank) const {
    return members.empty() ? rank : members[static_cast<std::size_t>(rank)];
  }
  int self() const { return job_rank(env.rank); }

  GlooProcessGroup& group;
  const RankEnvironment env;
  std::shared_ptr<Store> store;
  const Options options;
  const std::vector<int> members;  // of a subgroup: job ranks of its members; otherwise empty

  std::shared_ptr<gloo::Context> connected;
  std::shared_ptr<BufferRegistry> registry = std::make_shared<BufferRegistry>();
  std::unique_ptr<SignatureExchange> signatures;

  std::mutex mutex;
  std::condition_variable changed;
  // Guarded by mutex.
  Lane collectives;
  std::map<std::string, Lane> channels;  // by name; each with a thread from its first use on
  int running = 0;
  bool stopping = false;
  bool all_ended = false;
  std::optional<Failure> first_failure;

  std::vector<std::thread> threads;
  std::unique_ptr<EndWatcher> watcher;
};

}  // namespace gradsync
