#pragma once

#include <vector>

#include "gradsync/simulator/collective/analytic.hpp"
#include "gradsync/simulator/collective/collective.hpp"
#include "gradsync/simulator/plan/message_cost.hpp"

namespace gradsync {

/// An alltoall, or a send with its recv: messages between pairs of ranks. Both Gloo (alltoallv) and
/// NCCL (a group of ncclSend and ncclRecv) hand over all messages at once. The message between two
/// ranks starts when both have joined, and takes the library's cost (MessageCost), its bytes at the
/// rate of the links that it shares with all others, and the latency of the way. A rank is done
/// when all its messages have arrived.
///
/// With a timer there are no flows: when all ranks have joined, the exchange takes what the busiest
/// link needs for its bytes, and the longest latency.
class PairwiseExchange final : public Collective {
 public:
  PairwiseExchange(const Context& context, const CollectiveRecord& first, MessageCost cost,
                   AnalyticTimer* timer, Seconds& network_free);

 protected:
  void on_join(int rank) override;

 private:
  struct Message {
    int from;
    int to;
    Bytes bytes;
  };

  bool is_alltoall() const noexcept { return op_ == OpType::kAlltoall; }
  void run_timed();
  void start(const Message& message);
  void arrive(const Message& message);
  void deliver(int from, int to);
  void done(int rank);
  /// All bytes that `from` sends to `to`.
  Bytes bytes_between(int from, int to) const;
  Seconds closed_form() const;

  OpType op_;
  std::size_t element_size_;
  MessageCost cost_;
  AnalyticTimer* timer_;  // null: by flows
  Seconds* network_free_;
  std::vector<int> present_;   // in order of arrival
  std::vector<int> messages_;  // by rank: messages that have not arrived
};

}  // namespace gradsync
