#include "gradsync/simulator/collective/sim_group.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gradsync/comm/comm_error.hpp"
#include "gradsync/comm/signature.hpp"

namespace gradsync {

SimGroup::SimGroup(SimEngine& engine, RankNetwork& network, CollectiveFactory& collectives,
                   int present, Options options)
    : engine_(&engine),
      network_(&network),
      collectives_(&collectives),
      options_(std::move(options)),
      waiting_room_(std::make_shared<WaitingRoom>(engine, present, options_.timeout)),
      members_(static_cast<std::size_t>(present)) {}

SimGroup::SimGroup(SimGroup& parent, const std::string& name, const std::vector<int>& members)
    : engine_(parent.engine_),
      own_network_(std::make_unique<RankNetwork>(*engine_, parent.network_->platform(),
                                                 parent.network_->loads(),
                                                 parent.network_->transfers(), members)),
      own_collectives_(
          parent.options_.collectives_of(static_cast<int>(members.size()), *own_network_)),
      network_(own_network_.get()),
      collectives_(own_collectives_.get()),
      options_(parent.options_),
      waiting_room_(parent.waiting_room_),
      parent_(&parent),
      members_(members.size()),
      failure_(parent.failure_) {
  options_.name = name;
  options_.members = members;
}

SimGroup& SimGroup::subgroup(const std::string& name, const std::vector<int>& members) {
  if (present() != size() || !options_.collectives_of) {
    throw Error(
        ErrorCode::kUsage,
        fmt::format("the group {} cannot be simulated where one rank stands for others", name));
  }
  std::unique_ptr<SimGroup>& group = subgroups_[name];
  if (!group) group.reset(new SimGroup(*this, name, members));
  if (group->options_.members != members) {
    throw Error(ErrorCode::kDesync,
                fmt::format("the ranks do not agree about the members of the group {}", name));
  }
  return *group;
}

void SimGroup::assemble(int rank) {
  wait_for_all(rank, ranks_assembled_, "creation of the group", Phase::kInit);
}

SimGroup::Failure SimGroup::wait_for_failure(int rank) {
  while (!failure_) {
    waiting_room_->wait(job_rank(rank), [&] { return failure_.has_value(); });
  }
  return *failure_;
}

void SimGroup::enrol(int rank, FlightRecorder& recorder) {
  member(rank).recorder = &recorder;
}

void SimGroup::issue(const OperationPtr& operation) {
  if (is_point_to_point(operation->record.op) && present() != size()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("rank {}: {} cannot be simulated where one rank stands for others",
                            operation->rank, to_string(operation->record.op)));
  }
  engine_->in_kernel([&] {
    if (failure_) {
      member(operation->rank)
          .recorder->fail(operation->record.group, operation->record.sequence, engine_->now(),
                          failure_->cause);
      return;
    }
    operation->clock->collective_issued();
    if (has_lane(*operation)) {
      std::deque<OperationPtr>& lane = member(operation->rank).lanes[lane_of(*operation)];
      lane.push_back(operation);
      if (lane.size() == 1) start(operation);
      return;
    }
    member(operation->rank).queued.push_back(operation);
    start_next(operation->rank);
  });
}

DeviceSlots* SimGroup::slots_of(int rank) const {
  const auto& slots = options_.device_slots;
  return slots.empty() ? nullptr : slots[static_cast<std::size_t>(job_rank(rank))].get();
}

void SimGroup::start_next(int rank) {
  Member& m = member(rank);
  DeviceSlots* slots = slots_of(rank);
  const auto limit = static_cast<std::size_t>(options_.communication_threads);
  while (!failure_ && !m.queued.empty() && m.active.size() < limit) {
    if (slots != nullptr && !slots->take(&m, [this, rank] { start_next(rank); })) return;
    const OperationPtr operation = m.queued.front();
    m.queued.pop_front();
    m.active.push_back(operation);
    start(operation);
  }
}

std::int64_t SimGroup::lane_of(const Operation& operation) const {
  const CollectiveRecord& record = operation.record;
  if (!is_point_to_point(record.op)) return 0;
  const std::int64_t self = operation.rank, peer = record.root, ranks = size();
  return 1 + (record.op == OpType::kSend ? self * ranks + peer : peer * ranks + self);
}

bool SimGroup::has_lane(const Operation& operation) const {
  return is_point_to_point(operation.record.op) && collectives_->has_message_lanes();
}

std::string SimGroup::mismatch(const Meeting& meeting, const Operation& operation) const {
  const CollectiveRecord& record = operation.record;
  const int rank = operation.rank;
  if (!same_signature(meeting.first_record, record)) {
    return describe_mismatch(record.sequence, job_rank(meeting.first_rank),
                             signature(meeting.first_record), job_rank(rank), signature(record));
  }
  if (record.op != OpType::kAlltoall) return {};
  for (int other = 0; other < present(); ++other) {
    const Operation* joined = meeting.collective->joined(other);
    if (joined == nullptr) continue;
    for (const auto& [from, to] : {std::pair(joined, &operation), std::pair(&operation, joined)}) {
      const std::int64_t sent = from->record.splits->input[static_cast<std::size_t>(to->rank)];
      const std::int64_t expected = to->record.splits->output[static_cast<std::size_t>(from->rank)];
      if (sent == expected) continue;
      return describe_split_mismatch(record, job_rank(from->rank), sent, job_rank(to->rank),
                                     expected);
    }
  }
  return {};
}

void SimGroup::start(const OperationPtr& operation) {
  const CollectiveRecord& record = operation->record;
  const int rank = operation->rank;
  member(rank).recorder->start(record.group, record.sequence, engine_->now());
  const std::pair key(lane_of(*operation), record.sequence);
  auto found = meetings_.find(key);
  if (found == meetings_.end()) {
    const Collective::Context context{network_, present(), size() / present(),
                                      [this](Operation& op) { completed(op); }};
    auto collective = collectives_->make(context, record);
    const int expected = is_point_to_point(record.op) ? 2 : present();
    found = meetings_.emplace(key, Meeting{std::move(collective), rank, record, expected}).first;
  } else if (const std::string wrong = mismatch(found->second, *operation); !wrong.empty()) {
    fail({ErrorCode::kDesync, wrong});
    return;
  }
  // A copy: the meeting ends when the last rank's result is ready, possibly before join returns.
  const std::shared_ptr<Collective> collective = found->second.collective;
  if (++found->second.joined == found->second.expected) network_->loads().begin_communication();
  const Seconds overhead = collectives_->per_operation();
  if (overhead.count() > 0) {
    network_->after(overhead, {[collective, operation] { collective->join(operation); }});
  } else {
    collective->join(operation);
  }
}

void SimGroup::completed(Operation& operation) {
  if (failure_) return;  // failed while results were being delivered
  const int rank = operation.rank;
  const std::int64_t sequence = operation.record.sequence;
  Member& m = member(rank);
  operation.done = true;
  operation.clock->collective_ended();
  m.recorder->complete(operation.record.group, sequence, engine_->now());
  if (m.awaited == &operation) waiting_room_->wake(job_rank(rank));
  const auto meeting = meetings_.find({lane_of(operation), sequence});
  if (++meeting->second.completed == meeting->second.expected) {
    meetings_.erase(meeting);
    network_->loads().end_communication();
  }
  if (has_lane(operation)) {
    std::deque<OperationPtr>& lane = m.lanes[lane_of(operation)];
    lane.pop_front();
    if (!lane.empty()) start(lane.front());
    return;
  }
  std::erase_if(m.active, [&](const OperationPtr& other) { return other.get() == &operation; });
  if (DeviceSlots* slots = slots_of(rank)) slots->release();
  start_next(rank);
}

bool SimGroup::is_over(const Operation& operation) const {
  return operation.done || failure_.has_value();
}

void SimGroup::wait(Operation& operation) {
  const int rank = operation.rank;
  member(rank).awaited = &operation;
  const WaitingRoom::Outcome outcome =
      waiting_room_->wait(job_rank(rank), [&] { return is_over(operation); });
  member(rank).awaited = nullptr;
  if (operation.done) return;
  if (outcome == WaitingRoom::Outcome::kTimedOut && !failure_) throw_timeout(operation);
  throw_failure(operation);
}

void SimGroup::shutdown(int rank) {
  if (member(rank).is_done) return;
  member(rank).is_done = true;
  wait_for_all(rank, ranks_done_, "shutdown", Phase::kShutdown);
}

void SimGroup::wait_for_all(int rank, int& count, const char* what, Phase phase) {
  Operation last;  // represents the wait in messages
  last.rank = rank;
  last.record.group = options_.name;
  last.record.op = OpType::kBarrier;
  last.record.dtype = DType::kUInt8;
  last.record.label.phase = phase;
  last.record.label.what = what;
  last.record.sequence = -1;
  engine_->in_kernel([&] {
    if (failure_ || ++count < present()) return;
    for (int other = 0; other < present(); ++other) waiting_room_->wake(job_rank(other));
  });
  const WaitingRoom::Outcome outcome = waiting_room_->wait(
      job_rank(rank), [&] { return failure_.has_value() || count == present(); });
  if (count == present()) return;
  if (outcome == WaitingRoom::Outcome::kTimedOut && !failure_) throw_timeout(last);
  throw_failure(last);
}

void SimGroup::fail(const Failure& failure) {
  if (parent_ != nullptr) return parent_->fail(failure);
  engine_->in_kernel([&] {
    if (failure_) return;
    end_all(failure);
    for (const auto& [name, group] : subgroups_) group->end_all(failure);
    for (int rank = 0; rank < present(); ++rank) waiting_room_->wake(rank);
  });
}

/// In the kernel: stops everything in this group.
void SimGroup::end_all(const Failure& failure) {
  failure_ = failure;
  network_->close();
  meetings_.clear();
  for (Member& m : members_) {
    m.active.insert(m.active.end(), m.queued.begin(), m.queued.end());
    m.queued.clear();
    for (auto& [number, lane] : m.lanes) {
      m.active.insert(m.active.end(), lane.begin(), lane.end());
      lane.clear();
    }
    for (const OperationPtr& operation : m.active) {
      m.recorder->fail(operation->record.group, operation->record.sequence, engine_->now(),
                       failure.cause);
      operation->clock->collective_ended();
    }
    m.active.clear();
  }
}

void SimGroup::throw_failure(const Operation& operation) const {
  throw CommError(failure_->code, job_rank(operation.rank), operation.record, failure_->cause);
}

void SimGroup::throw_timeout(const Operation& operation) {
  const std::string cause =
      fmt::format("timed out after {}", format_duration(waiting_room_->timeout()));
  const CommError error(ErrorCode::kTimeout, job_rank(operation.rank), operation.record, cause);
  fail({ErrorCode::kPeerFailed, error.what()});
  throw error;
}

}  // namespace gradsync
