#include "gradsync/simulator/collective/message_ring.hpp"

#include <algorithm>
#include <cstring>

namespace gradsync {

MessageRing::MessageRing(const Context& context, int direction, std::int64_t window,
                         std::int64_t messages)
    : Collective(context),
      direction_(direction),
      window_(window),
      messages_(messages),
      ends_(index(ranks())) {
  for (End& end : ends_) end.arrived.resize(static_cast<std::size_t>(messages_));
}

void MessageRing::on_join(int rank) {
  ends_[index(rank)].data = operation(rank).output.data();
  advance({rank, previous(rank)});
}

bool MessageRing::may_send(int rank) const {
  const int receiver = next(rank);
  if (!has_joined(rank) || !has_joined(receiver)) return false;
  const End& end = ends_[index(rank)];
  return end.sent < messages_ && end.sent < window_ + end.received &&
         end.sent < window_ + ends_[index(receiver)].received;
}

void MessageRing::arrive(int sender, int first) {
  std::vector<Flow>& flows = ends_[index(sender)].flows;
  const auto flow = std::find_if(flows.begin(), flows.end(),
                                 [&](const Flow& other) { return other.first == first; });
  End& receiver = ends_[index(next(sender))];
  for (int message = first; message < first + flow->messages; ++message) {
    receiver.arrived[static_cast<std::size_t>(message)] = true;
  }
  flows.erase(flow);
  receive(next(sender));
  // The receiver now has something to forward, and the sender room to send.
  advance({next(sender), sender});
}

void MessageRing::receive(int rank) {
  End& end = ends_[index(rank)];
  while (end.received < messages_ && end.arrived[static_cast<std::size_t>(end.received)]) {
    const int sender = previous(rank);
    if (message_bytes(sender, end.received) > 0) deliver(sender, rank, end.received);
    ++end.received;
  }
}

void MessageRing::advance(std::vector<int> senders) {
  // A stack instead of recursion: empty messages arrive immediately, and there may be millions.
  while (!senders.empty()) {
    const int rank = senders.back();
    senders.pop_back();
    while (may_send(rank)) {
      // Messages that leave at the same time would share the hop and arrive together: send one
      // flow.
      const std::int64_t first = ends_[index(rank)].sent;
      Bytes bytes = 0;
      std::int64_t count = 0;
      while (may_send(rank) && message_bytes(rank, first + count) > 0) {
        bytes += message_bytes(rank, first + count);
        ++count;
        ++ends_[index(rank)].sent;
      }
      if (count > 0) {
        const Flow flow{static_cast<int>(first), static_cast<int>(count)};
        ends_[index(rank)].flows.push_back(flow);
        // The capture is small enough for std::function to avoid an allocation.
        send(rank, next(rank), bytes, [this, rank, first = flow.first] { arrive(rank, first); });
      } else {
        ++ends_[index(rank)].sent;
        ends_[index(next(rank))].arrived[static_cast<std::size_t>(first)] = true;
        receive(next(rank));
        senders.push_back(next(rank));
      }
    }
    complete_if_done(rank);
    complete_if_done(previous(rank));
  }
}

void MessageRing::complete_if_done(int rank) {
  End& end = ends_[index(rank)];
  if (end.completed || end.received < messages_ || ends_[index(next(rank))].received < messages_) {
    return;
  }
  end.completed = true;
  complete(rank);
}

MessageAllreduce::MessageAllreduce(const Context& context, const CollectiveRecord& record)
    : MessageAllreduce(context, record,
                       RingPlan(record.bytes, element_size(record.dtype), context.ranks)) {}

MessageAllreduce::MessageAllreduce(const Context& context, const CollectiveRecord& record,
                                   const RingPlan& plan)
    : MessageRing(context, -1, plan.segments_per_rank, plan.messages()),
      plan_(plan),
      reduce_(reduce_function(record.reduce_op, record.dtype)),
      element_size_(element_size(record.dtype)) {}

Bytes MessageAllreduce::message_bytes(int sender, std::int64_t message) const {
  return plan_.length(plan_.segment_of_message(sender, message));
}

void MessageAllreduce::deliver(int sender, int receiver, std::int64_t message) {
  const std::byte* from = data(sender);
  std::byte* to = data(receiver);
  if (from == nullptr || to == nullptr) return;
  // Read from the sender's tensor: the sender does not change this segment before it has travelled
  // around the ring.
  const std::int64_t segment = plan_.segment_of_message(sender, message);
  const auto bytes = static_cast<std::size_t>(plan_.length(segment));
  from += plan_.offset(segment);
  to += plan_.offset(segment);
  if (plan_.is_reduced(message)) {
    reduce_(to, to, from, bytes / element_size_);
  } else {
    std::memcpy(to, from, bytes);
  }
}

MessageAllgather::MessageAllgather(const Context& context, const CollectiveRecord& record)
    : MessageRing(context, +1, 2, 2 * (context.ranks - 1)), slice_bytes_(record.bytes) {}

Bytes MessageAllgather::message_bytes(int, std::int64_t message) const {
  return message % 2 == 0 ? slice_bytes_ / 2 : slice_bytes_ - slice_bytes_ / 2;
}

void MessageAllgather::deliver(int sender, int receiver, std::int64_t message) {
  // Message m of rank r carries half m % 2 of the slice of rank r - m / 2.
  const auto owner = static_cast<int>((sender + ranks() - message / 2) % ranks());
  const std::byte* from = data(sender);
  std::byte* to = data(receiver);
  if (from == nullptr || to == nullptr) return;
  const Bytes begin = owner * slice_bytes_ + (message % 2 == 0 ? 0 : slice_bytes_ / 2);
  std::memcpy(to + begin, from + begin, static_cast<std::size_t>(message_bytes(sender, message)));
}

}  // namespace gradsync
