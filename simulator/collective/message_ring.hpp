#pragma once

#include <vector>

#include "gradsync/comm/ring_plan.hpp"
#include "gradsync/simulator/collective/collective.hpp"

namespace gradsync {

/// A ring in which each rank sends a series of messages to its successor. Messages that leave at
/// the same time form one flow, because separate flows would share the hop and arrive together
/// anyway. Message m of a rank forwards what the rank received in message m - window, so it leaves
/// when
/// - the sender has the data: m < window, or it has received message m - window, and
/// - the receiver has room: it has joined, and has received message m - window too. Messages of a
///   hop are received in order. A rank is done when it has received all its messages and all
///   messages it sent have been received.
///
/// The window is one step of the ring (all-reduce: the segments of a chunk; all-gather: both halves
/// of a slice). Flows that share a hop progress in parallel and arrive together, so a step of c
/// bytes over a hop with latency a and bandwidth b takes a + c/b, and the uncontended ring steps *
/// (a + c/b) with a and b of the slowest hop: the textbook's 2(n-1)(a + S/(nb)).
///
/// Gloo limits the segments in flight to two. Up to 2n MiB (two segments per step) that equals this
/// window. Above, a literal limit of two would cost a latency per pair of segments here, because
/// both arrive at the same time. On a TCP connection they arrive one after the other, two suffice
/// to keep it busy, and only the latency of the step shows. simulator/README.md has the arithmetic.
class MessageRing : public Collective {
 protected:
  /// `direction` +1 or -1: rank r sends to r + direction.
  MessageRing(const Context& context, int direction, std::int64_t window, std::int64_t messages);

  virtual Bytes message_bytes(int sender, std::int64_t message) const = 0;
  /// Delivers the message's payload to `receiver`; does nothing for meta tensors.
  virtual void deliver(int sender, int receiver, std::int64_t message) = 0;

  /// The data of the rank's tensor; null without payload.
  std::byte* data(int rank) const { return ends_[index(rank)].data; }

  void on_join(int rank) final;

 private:
  /// Messages that left at the same time.
  struct Flow {
    int first;  // number of its first message; fits an int
    int messages;
  };
  struct End {
    std::int64_t sent = 0;      // number of messages that left this rank
    std::int64_t received = 0;  // number of messages received, in order
    std::vector<Flow> flows;    // in flight from this rank; few
    std::vector<bool> arrived;  // by message: has arrived, possibly out of order
    std::byte* data = nullptr;
    bool completed = false;
  };
  int next(int rank) const noexcept { return (rank + direction_ + ranks()) % ranks(); }
  int previous(int rank) const noexcept { return (rank - direction_ + ranks()) % ranks(); }
  bool may_send(int rank) const;
  /// All of the flow that starts with message `first` has arrived.
  void arrive(int sender, int first);
  void receive(int rank);
  void advance(std::vector<int> senders);
  void complete_if_done(int rank);

  int direction_;
  std::int64_t window_;
  std::int64_t messages_;
  std::vector<End> ends_;
};

/// Gloo's ring all-reduce; with payload, bit-identical to Gloo.
class MessageAllreduce final : public MessageRing {
 public:
  MessageAllreduce(const Context& context, const CollectiveRecord& record);

 protected:
  Bytes message_bytes(int sender, std::int64_t message) const override;
  void deliver(int sender, int receiver, std::int64_t message) override;

 private:
  MessageAllreduce(const Context& context, const CollectiveRecord& record, const RingPlan& plan);

  RingPlan plan_;
  ReduceFunction reduce_;
  std::size_t element_size_;
};

/// Gloo's ring all-gather (gloo/allgather.cc): slices move to higher ranks, each in two halves.
class MessageAllgather final : public MessageRing {
 public:
  MessageAllgather(const Context& context, const CollectiveRecord& record);

 protected:
  Bytes message_bytes(int sender, std::int64_t message) const override;
  void deliver(int sender, int receiver, std::int64_t message) override;

 private:
  Bytes slice_bytes_;
};

}  // namespace gradsync
