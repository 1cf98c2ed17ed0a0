#include "gradsync/comm/flight_recorder.hpp"

#include <algorithm>

namespace gradsync {

const char* to_string(OpType op) noexcept {
  switch (op) {
    case OpType::kAllreduce:
      return "allreduce";
    case OpType::kBroadcast:
      return "broadcast";
    case OpType::kAllgather:
      return "allgather";
    case OpType::kBarrier:
      return "barrier";
  }
  return "unknown";
}

const char* to_string(ReduceOp op) noexcept {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kAverage:
      return "average";
  }
  return "unknown";
}

const char* to_string(CollectiveState state) noexcept {
  switch (state) {
    case CollectiveState::kScheduled:
      return "scheduled";
    case CollectiveState::kStarted:
      return "started";
    case CollectiveState::kCompleted:
      return "completed";
    case CollectiveState::kFailed:
      return "failed";
  }
  return "unknown";
}

FlightRecorder::FlightRecorder(std::size_t capacity)
    : capacity_(std::max<std::size_t>(1, capacity)) {}

std::int64_t FlightRecorder::schedule(CollectiveRecord record) {
  const std::lock_guard lock(mutex_);
  auto counter = std::find_if(next_sequence_.begin(), next_sequence_.end(),
                              [&](const auto& entry) { return entry.first == record.group; });
  if (counter == next_sequence_.end()) {
    counter = next_sequence_.insert(counter, {record.group, 0});
  }
  record.sequence = counter->second++;
  record.state = CollectiveState::kScheduled;
  ++total_;
  if (ring_.size() == capacity_) ring_.pop_front();
  ring_.push_back(std::move(record));
  return ring_.back().sequence;
}

CollectiveRecord* FlightRecorder::find(const std::string& group, std::int64_t sequence) {
  // Newest first: a collective that changes state is nearly always among the last few.
  const auto found = std::find_if(ring_.rbegin(), ring_.rend(), [&](const CollectiveRecord& r) {
    return r.sequence == sequence && r.group == group;
  });
  return found == ring_.rend() ? nullptr : &*found;
}

void FlightRecorder::start(const std::string& group, std::int64_t sequence, Seconds now) {
  const std::lock_guard lock(mutex_);
  if (CollectiveRecord* record = find(group, sequence)) {
    record->state = CollectiveState::kStarted;
    record->started = now;
  }
}

void FlightRecorder::finish(const std::string& group, std::int64_t sequence, Seconds now,
                            CollectiveState state, std::string error) {
  CollectiveRecord copy;
  {
    const std::lock_guard lock(mutex_);
    CollectiveRecord* record = find(group, sequence);
    if (record == nullptr) return;  // already overwritten in the ring
    record->state = state;
    record->completed = now;
    record->error = std::move(error);
    if (!observer_) return;
    copy = *record;
  }
  observer_(copy);
}

void FlightRecorder::complete(const std::string& group, std::int64_t sequence, Seconds now) {
  finish(group, sequence, now, CollectiveState::kCompleted, {});
}

void FlightRecorder::fail(const std::string& group, std::int64_t sequence, Seconds now,
                          std::string error) {
  finish(group, sequence, now, CollectiveState::kFailed, std::move(error));
}

std::vector<CollectiveRecord> FlightRecorder::snapshot() const {
  const std::lock_guard lock(mutex_);
  return {ring_.begin(), ring_.end()};
}

std::int64_t FlightRecorder::total_scheduled() const {
  const std::lock_guard lock(mutex_);
  return total_;
}

void FlightRecorder::set_completion_observer(
    std::function<void(const CollectiveRecord&)> observer) {
  const std::lock_guard lock(mutex_);
  observer_ = std::move(observer);
}

}  // namespace gradsync
