#include "gradsync/simulator/collective/flow_ring.hpp"

#include <algorithm>
#include <cstring>

namespace gradsync {

FlowRing::FlowRing(const Context& context, int direction, std::int64_t steps, Bytes step_bytes)
    : Collective(context), direction_(direction), steps_(steps), step_bytes_(step_bytes) {}

void FlowRing::on_join(int) {
  if (++joined_ == ranks()) start();
}

void FlowRing::start() {
  flows_ = ranks();
  for (int rank = 0; rank < ranks(); ++rank) {
    transfer(rank, next(rank), static_cast<double>(steps_ * step_bytes_),
             [this, rank] { hop_ended(rank); });
  }
}

void FlowRing::hop_ended(int sender) {
  const auto latencies = static_cast<double>(steps_);
  finished_ =
      std::max(finished_, network().now() + latencies * network().latency(sender, next(sender)));
  if (--flows_ == 0) after(finished_ - network().now(), [this] { finish(); });
}

void FlowRing::finish() {
  deliver();
  for (int rank = 0; rank < ranks(); ++rank) complete(rank);
}

FlowAllreduce::FlowAllreduce(const Context& context, const CollectiveRecord& record)
    : FlowAllreduce(context, record,
                    RingPlan(record.bytes, element_size(record.dtype), context.ranks)) {}

FlowAllreduce::FlowAllreduce(const Context& context, const CollectiveRecord& record,
                             const RingPlan& plan)
    : FlowRing(context, -1, 2 * (context.ranks - 1), plan.chunk_bytes()),
      plan_(plan),
      reduce_(reduce_function(record.reduce_op, record.dtype)),
      element_size_(element_size(record.dtype)) {}

void FlowAllreduce::deliver() {
  std::vector<std::byte*> data;
  for (int rank = 0; rank < ranks(); ++rank) data.push_back(operation(rank).output.data());
  if (std::find(data.begin(), data.end(), nullptr) != data.end()) return;
  reduce_in_ring_order(plan_, data, reduce_, element_size_);
}

FlowAllgather::FlowAllgather(const Context& context, const CollectiveRecord& record)
    : FlowRing(context, +1, context.ranks - 1, record.bytes), slice_bytes_(record.bytes) {}

void FlowAllgather::deliver() {
  const auto bytes = static_cast<std::size_t>(slice_bytes_);
  for (int owner = 0; owner < ranks(); ++owner) {
    const std::size_t begin = index(owner) * bytes;
    const std::byte* from = operation(owner).output.data();
    for (int receiver = 0; receiver < ranks(); ++receiver) {
      std::byte* to = operation(receiver).output.data();
      if (from == nullptr || to == nullptr || owner == receiver) continue;
      std::memcpy(to + begin, from + begin, bytes);
    }
  }
}

}  // namespace gradsync
