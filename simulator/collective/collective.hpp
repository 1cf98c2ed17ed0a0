#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "gradsync/comm/flight_recorder.hpp"
#include "gradsync/simulator/platform/rank_network.hpp"
#include "gradsync/tensor/tensor.hpp"

namespace gradsync {

class SimClock;

/// One collective as issued by one rank.
struct Operation {
  int rank = 0;
  CollectiveRecord record;
  /// all-gather: this rank's slice; alltoall and send: what is sent; otherwise undefined.
  Tensor input;
  /// Reduced or received in place; undefined for a barrier and a send. A reduce or reduce-scatter
  /// has a copy of the caller's tensor here, which `take_result` reads.
  Tensor output;
  std::function<void()> take_result = {};  ///< called when the output is ready; may be empty
  bool done = false;
  /// The clock of the rank, which tracks collectives in flight; null if not needed.
  SimClock* clock = nullptr;
};
using OperationPtr = std::shared_ptr<Operation>;

/// One collective over all ranks. It learns of each rank's arrival, sends messages, and reports for
/// each rank when its result is ready. Lives until its last message has arrived. Kernel context
/// only, so its steps never interleave.
///
/// How a collective becomes flows, in short (CollectiveFactory decides):
/// - Gloo's own algorithms, with Gloo's bits: all-reduce in the ring of RingPlan, all-gather in a
///   ring, broadcast in a binomial tree, barrier by dissemination (message_ring, flow_ring,
///   tree_collectives); a reduce-scatter is an all-reduce of which each rank keeps its slice;
/// - alltoall, send and recv are messages between pairs of ranks, on both libraries
///   (pairwise_exchange);
/// - everything else follows a Plan (plan_collective): NCCL's algorithms, Gloo's bcube and
///   halving-doubling, hierarchical.
/// A message is one flow from rank to rank. With fidelity `flow` all messages of a hop are one
/// flow; with `analytic` there are no flows.
class Collective : public std::enable_shared_from_this<Collective> {
 public:
  struct Context {
    RankNetwork* network;
    int ranks;  ///< ranks that have an actor
    int alike;  ///< number of ranks each actor represents, including itself
    /// Called once for each rank, when its result is ready and everything it sent has been
    /// received.
    std::function<void(Operation&)> completed;
  };

  virtual ~Collective() = default;
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

  /// Every rank (of a send or recv: both) joins once, with a collective of the same signature.
  void join(OperationPtr operation);
  /// Null before the rank has joined.
  const Operation* joined(int rank) const { return operations_[index(rank)].get(); }

 protected:
  explicit Collective(Context context);

  virtual void on_join(int rank) = 0;

  RankNetwork& network() const noexcept { return *context_.network; }
  int ranks() const noexcept { return context_.ranks; }
  int alike() const noexcept { return context_.alike; }
  bool has_joined(int rank) const { return operations_[index(rank)] != nullptr; }
  Operation& operation(int rank) const { return *operations_[index(rank)]; }
  void complete(int rank);
  /// Sends a message of this collective; `arrived` may use `this`.
  void send(int from, int to, Bytes bytes, std::function<void()> arrived);
  /// A flow of this collective: see RankNetwork::transfer. `left` may use `this`.
  void transfer(int from, int to, double bytes, std::function<void()> left);
  void after(Seconds delay, std::function<void()> event);

  static std::size_t index(int rank) noexcept { return static_cast<std::size_t>(rank); }

 private:
  Context context_;
  std::vector<OperationPtr> operations_;  // by rank; null before it joins
};

}  // namespace gradsync
