#include "gradsync/comm/flight_recorder.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace gradsync {

const char* to_string(OpType op) noexcept {
  switch (op) {
    case OpType::kAllreduce:
      return "allreduce";
    case OpType::kBroadcast:
      return "broadcast";
    case OpType::kAllgather:
      return "allgather";
    case OpType::kReduce:
      return "reduce";
    case OpType::kReduceScatter:
      return "reduce_scatter";
    case OpType::kAlltoall:
      return "alltoall";
    case OpType::kSend:
      return "send";
    case OpType::kRecv:
      return "recv";
    case OpType::kBarrier:
      return "barrier";
  }
  return "unknown";
}

bool reduces(OpType op) noexcept {
  return op == OpType::kAllreduce || op == OpType::kReduce || op == OpType::kReduceScatter;
}

bool has_root(OpType op) noexcept {
  return op == OpType::kBroadcast || op == OpType::kReduce;
}

bool is_point_to_point(OpType op) noexcept {
  return op == OpType::kSend || op == OpType::kRecv;
}

std::string channel_name(const std::string& group, int from, int to) {
  return fmt::format("{}:{}->{}", group, from, to);
}

std::optional<Channel> parse_channel(const std::string& name) {
  const std::size_t colon = name.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  const std::size_t arrow = name.find("->", colon);
  if (arrow == std::string::npos) return std::nullopt;
  Channel channel;
  channel.group = name.substr(0, colon);
  const char* const end = name.data() + name.size();
  const auto from = std::from_chars(name.data() + colon + 1, name.data() + arrow, channel.from);
  const auto to = std::from_chars(name.data() + arrow + 2, end, channel.to);
  const bool numbers = from.ec == std::errc() && from.ptr == name.data() + arrow &&
                       to.ec == std::errc() && to.ptr == end;
  return numbers ? std::optional(std::move(channel)) : std::nullopt;
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
