#include "simulator/sim_group.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/comm/comm_error.hpp"
#include "engine/comm/signature.hpp"

namespace gradsync {

SimGroup::SimGroup(SimEngine& engine, RankNetwork& network, CollectiveFactory& collectives,
                   int present, Options options)
    : engine_(&engine),
      network_(&network),
      collectives_(&collectives),
      options_(std::move(options)),
      waiting_room_(engine, present, options_.timeout),
      members_(static_cast<std::size_t>(present)) {}

void SimGroup::enrol(int rank, FlightRecorder& recorder) {
  member(rank).recorder = &recorder;
}

void SimGroup::issue(const OperationPtr& operation) {
  engine_->in_kernel([&] {
    if (failure_) {
      member(operation->rank)
          .recorder->fail(options_.name, operation->record.sequence, engine_->now(),
                          failure_->cause);
      return;
    }
    member(operation->rank).queued.push_back(operation);
    start_next(operation->rank);
  });
}

void SimGroup::start_next(int rank) {
  Member& m = member(rank);
  const auto limit = static_cast<std::size_t>(options_.communication_threads);
  while (!failure_ && !m.queued.empty() && m.active.size() < limit) {
    const OperationPtr operation = m.queued.front();
    m.queued.pop_front();
    m.active.push_back(operation);
    start(operation);
  }
}

void SimGroup::start(const OperationPtr& operation) {
  const CollectiveRecord& record = operation->record;
  const int rank = operation->rank;
  member(rank).recorder->start(options_.name, record.sequence, engine_->now());
  auto found = meetings_.find(record.sequence);
  if (found == meetings_.end()) {
    const Collective::Context context{network_, present(), size() / present(),
                                      [this](Operation& op) { completed(op); }};
    auto collective = collectives_->make(context, record);
    found = meetings_.emplace(record.sequence, Meeting{std::move(collective), rank, record}).first;
  } else if (!same_signature(found->second.first_record, record)) {
    const Meeting& meeting = found->second;
    fail({ErrorCode::kDesync,
          describe_mismatch(record.sequence, meeting.first_rank, signature(meeting.first_record),
                            rank, signature(record))});
    return;
  }
  // A copy: the meeting is over when the last rank's result is there, perhaps before join returns.
  const std::shared_ptr<Collective> collective = found->second.collective;
  const Seconds overhead = collectives_->per_operation();
  if (overhead.count() > 0) {
    network_->after(overhead, [collective, operation] { collective->join(operation); });
  } else {
    collective->join(operation);
  }
}

void SimGroup::completed(Operation& operation) {
  if (failure_) return;  // at this very instant, while results were handed out
  const int rank = operation.rank;
  const std::int64_t sequence = operation.record.sequence;
  Member& m = member(rank);
  operation.done = true;
  m.recorder->complete(options_.name, sequence, engine_->now());
  if (m.awaited == &operation) waiting_room_.wake(rank);
  const auto meeting = meetings_.find(sequence);
  if (++meeting->second.completed == present()) meetings_.erase(meeting);
  std::erase_if(m.active, [&](const OperationPtr& other) { return other.get() == &operation; });
  start_next(rank);
}

bool SimGroup::is_over(const Operation& operation) const {
  return operation.done || failure_.has_value();
}

void SimGroup::wait(Operation& operation) {
  const int rank = operation.rank;
  member(rank).awaited = &operation;
  const WaitingRoom::Outcome outcome = waiting_room_.wait(rank, [&] { return is_over(operation); });
  member(rank).awaited = nullptr;
  if (operation.done) return;
  if (outcome == WaitingRoom::Outcome::kTimedOut && !failure_) throw_timeout(operation);
  throw_failure(operation);
}

void SimGroup::shutdown(int rank) {
  Operation last;  // stands for the shutdown in messages
  last.rank = rank;
  last.record.group = options_.name;
  last.record.op = OpType::kBarrier;
  last.record.dtype = DType::kUInt8;
  last.record.label.phase = Phase::kShutdown;
  last.record.label.what = "shutdown";
  last.record.sequence = -1;
  engine_->in_kernel([&] {
    if (failure_ || member(rank).is_done) return;
    member(rank).is_done = true;
    if (++ranks_done_ < present()) return;
    for (int other = 0; other < present(); ++other) waiting_room_.wake(other);
  });
  const WaitingRoom::Outcome outcome =
      waiting_room_.wait(rank, [&] { return failure_.has_value() || ranks_done_ == present(); });
  if (ranks_done_ == present()) return;
  if (outcome == WaitingRoom::Outcome::kTimedOut && !failure_) throw_timeout(last);
  throw_failure(last);
}

void SimGroup::fail(const Failure& failure) {
  engine_->in_kernel([&] {
    if (failure_) return;
    failure_ = failure;
    network_->close();
    meetings_.clear();
    for (int rank = 0; rank < present(); ++rank) {
      Member& m = member(rank);
      m.active.insert(m.active.end(), m.queued.begin(), m.queued.end());
      m.queued.clear();
      for (const OperationPtr& operation : m.active) {
        m.recorder->fail(options_.name, operation->record.sequence, engine_->now(), failure.cause);
      }
      m.active.clear();
      waiting_room_.wake(rank);
    }
  });
}

void SimGroup::throw_failure(const Operation& operation) const {
  throw CommError(failure_->code, operation.rank, operation.record, failure_->cause);
}

void SimGroup::throw_timeout(const Operation& operation) {
  const std::string cause =
      fmt::format("timed out after {}", format_duration(waiting_room_.timeout()));
  const CommError error(ErrorCode::kTimeout, operation.rank, operation.record, cause);
  fail({ErrorCode::kPeerFailed, error.what()});
  throw error;
}

}  // namespace gradsync
