#pragma once

#include <vector>

#include "gradsync/comm/ring_plan.hpp"
#include "gradsync/simulator/collective/collective.hpp"

namespace gradsync {

/// A ring of ranks in which each sends a series of messages to the next one on. Those that leave at
/// the same instant are one flow: apart they would share the hop and arrive together. Message m of
/// a rank passes on what it received in message m - window, so it leaves when
/// - the sender has it: m < window, or its message m - window has been received, and
/// - the receiver has room for it: it has joined, and has received message m - window too.
/// Messages of one hop are received in their order. A rank is done when it has received all its
/// messages and all that it sent has been received.
///
/// The window is one step of the ring (all-reduce: the segments of a chunk; all-gather: both pieces
/// of a slice). Flows that share a hop progress side by side and arrive together, so that a step of
/// c bytes over a hop of latency a and bandwidth b takes a + c/b, and the whole ring, uncontended,
/// steps * (a + c/b) with the slowest hop's a and b: the textbook's 2(n-1)(a + S/(nb)).
///
/// Gloo bounds the segments in flight at two. For up to 2n MiB (two segments a step) that is this
/// window. Beyond, a literal bound of two would pay a latency for each pair of segments here,
/// because both arrive at the same instant; on a TCP connection they arrive one after the other,
/// two suffice to keep it busy, and no latency but the step's shows. simulator/README.md has the
/// arithmetic.
class MessageRing : public Collective {
 protected:
  /// `direction` +1 or -1: rank r sends to r + direction.
  MessageRing(const Context& context, int direction, std::int64_t window, std::int64_t messages);

  virtual Bytes message_bytes(int sender, std::int64_t message) const = 0;
  /// The message's payload reaches `receiver`; nothing to do for meta tensors.
  virtual void deliver(int sender, int receiver, std::int64_t message) = 0;

  /// Of the rank's tensor; null for one without payload.
  std::byte* data(int rank) const { return ends_[index(rank)].data; }

  void on_join(int rank) final;

 private:
  /// Messages that left at one instant.
  struct Flow {
    int first;  // its number; a rank sends fewer messages than an int has numbers
    int messages;
  };
  struct End {
    std::int64_t sent = 0;      // messages that left this rank
    std::int64_t received = 0;  // messages that it has received, in order
    std::vector<Flow> flows;    // under way from this rank; few
    std::vector<bool> arrived;  // by message: it is here, perhaps before its turn
    std::byte* data = nullptr;
    bool completed = false;
  };
  int next(int rank) const noexcept { return (rank + direction_ + ranks()) % ranks(); }
  int previous(int rank) const noexcept { return (rank - direction_ + ranks()) % ranks(); }
  bool may_send(int rank) const;
  /// All of the flow that began with message `first` is there.
  void arrive(int sender, int first);
  void receive(int rank);
  void advance(std::vector<int> senders);
  void complete_if_done(int rank);

  int direction_;
  std::int64_t window_;
  std::int64_t messages_;
  std::vector<End> ends_;
};

/// Gloo's ring all-reduce; with payload its bits are Gloo's.
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

/// Gloo's ring all-gather (gloo/allgather.cc): slices go up the ranks, each in two halves.
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
