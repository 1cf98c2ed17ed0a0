#include <algorithm>
#include <cstring>
#include <thread>

#include "gradsync/comm/comm_error.hpp"
#include "gradsync/comm/reduce_functions.hpp"
#include "gradsync/comm/ring_plan.hpp"
#include "gradsync/comm/signature.hpp"
#include "gradsync/tensor/rounding.hpp"
#include "tests/support/thread_process_group.hpp"

namespace gradsync::test {
namespace {

/// As Gloo's ring sums.
void ring_reduce(const std::vector<Tensor>& tensors, ReduceOp op) {
  const Tensor& first = tensors.front();
  if (first.is_meta() || first.numel() == 0) return;
  std::vector<std::byte*> data;
  for (const Tensor& tensor : tensors) data.push_back(tensor.data());
  const std::size_t element = element_size(first.dtype());
  reduce_in_ring_order(RingPlan(first.nbytes(), element, static_cast<int>(tensors.size())), data,
                       reduce_function(op, first.dtype()), element);
}

}  // namespace

class ThreadWork final : public Work {
 public:
  ThreadWork(ThreadWorld& world, int rank, std::int64_t sequence)
      : world_(world), rank_(rank), sequence_(sequence) {}
  void wait() override { world_.wait(rank_, sequence_); }
  bool is_completed() const override { return world_.is_done(sequence_); }

 private:
  ThreadWorld& world_;
  int rank_;
  std::int64_t sequence_;
};

void ThreadWorld::issue(Call call) {
  const std::lock_guard lock(mutex_);
  const std::int64_t sequence = call.record.sequence;
  call.recorder->start(call.record.group, sequence, call.record.issued);
  std::shared_ptr<Collective>& collective = collectives_[sequence];
  if (!collective) collective = std::make_shared<Collective>();
  collective->calls.push_back(std::move(call));
  if (collective->calls.size() != static_cast<std::size_t>(size_)) return;
  carry_out(*collective);
  collective->done = true;
  changed_.notify_all();
}

void ThreadWorld::carry_out(Collective& collective) {
  std::vector<Call>& calls = collective.calls;
  std::ranges::sort(calls, {}, &Call::rank);
  const CollectiveRecord& record = calls.front().record;
  const std::string expected = signature(record);
  for (const Call& call : calls) {
    const std::string actual = signature(call.record);
    if (actual != expected) {
      collective.failure = {ErrorCode::kDesync,
                            describe_mismatch(record.sequence, 0, expected, call.rank, actual)};
      for (const Call& c : calls) {
        c.recorder->fail(record.group, record.sequence, c.record.issued,
                         collective.failure->second);
      }
      return;
    }
  }

  const bool has_bytes = record.op != OpType::kBarrier && !calls.front().input.is_meta();
  if (has_bytes && record.op == OpType::kAllreduce) {
    std::vector<Tensor> tensors;
    for (const Call& call : calls) tensors.push_back(call.input);
    if (record.reduce_op == ReduceOp::kAverage) {
      for (Tensor& tensor : tensors) {
        tensor.device().scale(tensor, tensor, round_to(tensor.dtype(), 1.0 / size_));
      }
    }
    ring_reduce(tensors, record.reduce_op);
  } else if (has_bytes && record.op == OpType::kBroadcast) {
    const Tensor& source = calls[static_cast<std::size_t>(record.root)].input;
    for (const Call& call : calls) {
      std::memmove(call.output.data(), source.data(), static_cast<std::size_t>(record.bytes));
    }
  } else if (has_bytes && record.op == OpType::kAllgather) {
    for (const Call& to : calls) {
      for (const Call& from : calls) {
        std::memcpy(to.output.data() + from.rank * record.bytes, from.input.data(),
                    static_cast<std::size_t>(record.bytes));
      }
    }
  }
  for (const Call& call : calls) {
    call.recorder->complete(record.group, record.sequence, call.record.issued);
  }
}

void ThreadWorld::wait(int rank, std::int64_t sequence) {
  std::unique_lock lock(mutex_);
  const std::shared_ptr<Collective> collective = collectives_.at(sequence);
  const bool woken =
      changed_.wait_for(lock, timeout_, [&] { return collective->done || aborted_.has_value(); });
  const auto own = std::ranges::find(collective->calls, rank, &Call::rank);
  if (collective->failure) {
    throw CommError(collective->failure->first, rank, own->record, collective->failure->second);
  }
  if (collective->done) return;
  if (!woken) throw CommError(ErrorCode::kTimeout, rank, own->record, "timed out");
  throw CommError(ErrorCode::kPeerFailed, rank, own->record,
                  "rank " + std::to_string(aborted_->first) + " failed: " + aborted_->second);
}

bool ThreadWorld::is_done(std::int64_t sequence) {
  const std::lock_guard lock(mutex_);
  return collectives_.at(sequence)->done;
}

void ThreadWorld::abort(int rank, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (!aborted_) aborted_ = {rank, reason};
  changed_.notify_all();
}

WorkPtr ThreadProcessGroup::issue(const CollectiveRecord& record, Tensor input, Tensor output) {
  world_.issue({rank(), record, shared_flight_recorder(), std::move(input), std::move(output)});
  return std::make_shared<ThreadWork>(world_, rank(), record.sequence);
}

WorkPtr ThreadProcessGroup::do_allreduce(Tensor tensor, ReduceOp, const CollectiveRecord& record) {
  return issue(record, tensor, tensor);
}
WorkPtr ThreadProcessGroup::do_broadcast(Tensor tensor, int, const CollectiveRecord& record) {
  return issue(record, tensor, tensor);
}
WorkPtr ThreadProcessGroup::do_allgather(Tensor output, Tensor input,
                                         const CollectiveRecord& record) {
  return issue(record, std::move(input), std::move(output));
}
WorkPtr ThreadProcessGroup::do_barrier(const CollectiveRecord& record) {
  return issue(record, {}, {});
}

void run_ranks(ThreadWorld& world, const std::function<void(RankContext&)>& body) {
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(world.size()));
  std::vector<char> consequence(errors.size(), 0);  // bytes: written by several threads
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world.size(); ++rank) {
    threads.emplace_back([&, rank] {
      const auto slot = static_cast<std::size_t>(rank);
      try {
        RankContext context(world, rank);
        body(context);
      } catch (const std::exception& error) {
        const auto* comm = dynamic_cast<const CommError*>(&error);
        consequence[slot] = comm != nullptr && comm->code() == ErrorCode::kPeerFailed ? 1 : 0;
        errors[slot] = std::current_exception();
        world.abort(rank, error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const bool only_causes : {true, false}) {
    for (std::size_t rank = 0; rank < errors.size(); ++rank) {
      if (errors[rank] && !(only_causes && consequence[rank] != 0)) {
        std::rethrow_exception(errors[rank]);
      }
    }
  }
}

std::vector<TraceEntry> trace(const ProcessGroup& group, std::size_t first) {
  std::vector<TraceEntry> entries;
  const auto records = group.flight_recorder().snapshot();
  for (std::size_t i = first; i < records.size(); ++i) {
    entries.emplace_back(to_string(records[i].op), records[i].elements);
  }
  return entries;
}

}  // namespace gradsync::test
