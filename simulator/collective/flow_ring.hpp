#pragma once

#include "gradsync/comm/ring_plan.hpp"
#include "gradsync/simulator/collective/collective.hpp"

namespace gradsync {

/// A ring whose messages are merged into one flow per hop, for scale: n flows instead of n * 2(n-1)
/// times the segments per chunk.
///
/// Once all ranks have joined, each hop carries `steps` * `step_bytes` bytes at once, and ends
/// `steps` hop latencies after its last byte has left: steps * (a + step_bytes / b) on an
/// uncontended hop, the same as MessageRing. The slowest hop ends the collective, for all ranks at
/// the same time. Under contention the bytes share cables as those of the messages do. Not modeled:
/// a fast hop that waits for a slow one step by step, and a late rank that stalls its neighbors
/// only once they need its data.
class FlowRing : public Collective {
 protected:
  /// `direction` +1 or -1: rank r sends to r + direction.
  FlowRing(const Context& context, int direction, std::int64_t steps, Bytes step_bytes);

  /// Delivers all results at once; does nothing for meta tensors.
  virtual void deliver() = 0;

  void on_join(int rank) final;

 private:
  void start();
  void hop_ended(int sender);
  void finish();
  int next(int rank) const noexcept { return (rank + direction_ + ranks()) % ranks(); }

  int direction_;
  std::int64_t steps_;
  Bytes step_bytes_;
  int joined_ = 0;
  int flows_ = 0;        // in flight
  Seconds finished_{0};  // when the slowest finished hop has paid its latencies
};

/// Equivalent to MessageAllreduce, in time and in bits.
class FlowAllreduce final : public FlowRing {
 public:
  FlowAllreduce(const Context& context, const CollectiveRecord& record);

 protected:
  void deliver() override;

 private:
  FlowAllreduce(const Context& context, const CollectiveRecord& record, const RingPlan& plan);

  RingPlan plan_;
  ReduceFunction reduce_;
  std::size_t element_size_;
};

/// Equivalent to MessageAllgather.
class FlowAllgather final : public FlowRing {
 public:
  FlowAllgather(const Context& context, const CollectiveRecord& record);

 protected:
  void deliver() override;

 private:
  Bytes slice_bytes_;
};

}  // namespace gradsync
