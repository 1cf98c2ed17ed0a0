#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gradsync/autograd/graph.hpp"
#include "gradsync/comm/process_group.hpp"
#include "gradsync/core/error.hpp"
#include "tests/support/fake_clock.hpp"

namespace gradsync::test {

/// Test double: what the ranks of a ThreadProcessGroup share. Collectives are carried out by the
/// rank that comes last, in the order of issue, with the summation order of Gloo's ring.
class ThreadWorld {
 public:
  /// `timeout`: of each wait, in real time.
  explicit ThreadWorld(int size, std::chrono::milliseconds timeout = std::chrono::seconds(20))
      : size_(size), timeout_(timeout) {}

  int size() const noexcept { return size_; }

 private:
  friend class ThreadProcessGroup;
  friend class ThreadWork;
  friend void run_ranks(ThreadWorld& world, const std::function<void(struct RankContext&)>& body);

  struct Call {
    int rank;
    CollectiveRecord record;
    std::shared_ptr<FlightRecorder> recorder;  // a rank may have left when its collective ends
    Tensor input;
    Tensor output;  ///< in-place operations: the same as the input
  };
  struct Collective {
    std::vector<Call> calls;
    bool done = false;
    std::optional<std::pair<ErrorCode, std::string>> failure;
  };

  /// What joins the calls of one collective: group (or channel), and sequence number.
  using Key = std::pair<std::string, std::int64_t>;

  void issue(Call call);
  void wait(int rank, const Key& key);
  bool is_done(const Key& key);
  /// A rank ended with an error: whoever waits for it will wait in vain.
  void abort(int rank, const std::string& reason);
  void carry_out(Collective& collective);
  /// The error of calls that do not match, if they do not.
  std::string mismatch(const std::vector<Call>& calls) const;
  void move_data(std::vector<Call>& calls) const;

  int size_;
  std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, std::shared_ptr<Collective>> collectives_;
  std::optional<std::pair<int, std::string>> aborted_;
};

/// Test double: one rank of a world of threads in this process.
class ThreadProcessGroup final : public ProcessGroup {
 public:
  ThreadProcessGroup(ThreadWorld& world, int rank, Clock& clock)
      : ProcessGroup(rank, world.size(), "default_pg", clock, std::make_shared<FlightRecorder>()),
        world_(world) {}

  std::string backend_name() const override { return "threads"; }
  void shutdown() override {}

 protected:
  WorkPtr do_allreduce(Tensor tensor, ReduceOp op, const CollectiveRecord& record) override;
  WorkPtr do_broadcast(Tensor tensor, int root, const CollectiveRecord& record) override;
  WorkPtr do_allgather(Tensor output, Tensor input, const CollectiveRecord& record) override;
  WorkPtr do_barrier(const CollectiveRecord& record) override;
  WorkPtr do_reduce(Tensor tensor, int root, ReduceOp op, const CollectiveRecord& record) override;
  WorkPtr do_reduce_scatter(Tensor output, Tensor input, ReduceOp op,
                            const CollectiveRecord& record) override;
  WorkPtr do_alltoall(Tensor output, Tensor input, const CollectiveRecord& record) override;
  WorkPtr do_send(Tensor tensor, int dst, const CollectiveRecord& record) override;
  WorkPtr do_recv(Tensor tensor, int src, const CollectiveRecord& record) override;

 private:
  WorkPtr issue(const CollectiveRecord& record, Tensor input, Tensor output);

  ThreadWorld& world_;
};

/// What a rank of a test has.
struct RankContext {
  explicit RankContext(ThreadWorld& world, int rank_)
      : rank(rank_), group(world, rank_, clock), graph(clock) {}

  int rank;
  FakeClock clock;
  ThreadProcessGroup group;
  Graph graph;
};

/// Runs `body` once a rank, each in a thread of its own, and returns when all have ended. The first
/// error that is no consequence of another rank's is rethrown. Catch's assertions are not
/// thread-safe in 2.x: let `body` store what it finds and check it afterwards.
void run_ranks(ThreadWorld& world, const std::function<void(RankContext&)>& body);
inline void run_ranks(int size, const std::function<void(RankContext&)>& body) {
  ThreadWorld world(size);
  run_ranks(world, body);
}

/// What each rank's `body` returns, by rank.
template <typename Body>
auto results_of_ranks(int size, Body body) {
  std::vector<decltype(body(std::declval<RankContext&>()))> results(static_cast<std::size_t>(size));
  run_ranks(size, [&](RankContext& context) {
    results[static_cast<std::size_t>(context.rank)] = body(context);
  });
  return results;
}

/// One collective of a trace: operation and elements, e.g. {"allreduce", 146}.
using TraceEntry = std::pair<std::string, std::int64_t>;
/// The collectives that this rank has issued since the `first`-th.
std::vector<TraceEntry> trace(const ProcessGroup& group, std::size_t first = 0);

}  // namespace gradsync::test
