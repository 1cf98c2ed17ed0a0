#include <algorithm>
#include <cstring>
#include <numeric>
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
  ThreadWork(ThreadWorld& world, int rank, const CollectiveRecord& record)
      : world_(world), rank_(rank), key_(record.group, record.sequence) {}
  void wait() override { world_.wait(rank_, key_); }
  bool is_completed() const override { return world_.is_done(key_); }

 private:
  ThreadWorld& world_;
  int rank_;
  ThreadWorld::Key key_;
};

void ThreadWorld::issue(Call call) {
  const std::lock_guard lock(mutex_);
  const std::int64_t sequence = call.record.sequence;
  call.recorder->start(call.record.group, sequence, call.record.issued);
  std::shared_ptr<Collective>& collective = collectives_[{call.record.group, sequence}];
  if (!collective) collective = std::make_shared<Collective>();
  const int expected = is_point_to_point(call.record.op) ? 2 : size_;
  collective->calls.push_back(std::move(call));
  if (std::ssize(collective->calls) != expected) return;
  carry_out(*collective);
  collective->done = true;
  changed_.notify_all();
}

void ThreadWorld::carry_out(Collective& collective) {
  std::vector<Call>& calls = collective.calls;
  std::ranges::sort(calls, {}, &Call::rank);
  const CollectiveRecord record = calls.front().record;
  if (const std::string wrong = mismatch(calls); !wrong.empty()) {
    collective.failure = {ErrorCode::kDesync, wrong};
    for (const Call& c : calls) {
      c.recorder->fail(record.group, record.sequence, c.record.issued, wrong);
    }
    return;
  }
  if (record.op != OpType::kBarrier && !calls.front().input.is_meta()) move_data(calls);
  for (const Call& call : calls) {
    call.recorder->complete(record.group, record.sequence, call.record.issued);
  }
}

std::string ThreadWorld::mismatch(const std::vector<Call>& calls) const {
  const CollectiveRecord& record = calls.front().record;
  const std::string expected = signature(record);
  for (const Call& call : calls) {
    const std::string actual = signature(call.record);
    if (!signatures_match(actual, expected)) {
      return describe_mismatch(record.sequence, calls.front().rank, expected, call.rank, actual);
    }
  }
  if (record.op != OpType::kAlltoall) return {};
  for (const Call& from : calls) {
    for (const Call& to : calls) {
      const std::int64_t sent = from.record.splits->input[static_cast<std::size_t>(to.rank)];
      const std::int64_t expects = to.record.splits->output[static_cast<std::size_t>(from.rank)];
      if (sent == expects) continue;
      return describe_split_mismatch(record, from.rank, sent, to.rank, expects);
    }
  }
  return {};
}

/// Reads all inputs before it writes an output, because the two may be the same memory.
void ThreadWorld::move_data(std::vector<Call>& calls) const {
  const CollectiveRecord& record = calls.front().record;
  const std::size_t element = element_size(record.dtype);
  std::vector<Tensor> inputs;
  for (const Call& call : calls) inputs.push_back(call.input.clone());
  if (reduces(record.op)) {
    if (record.reduce_op == ReduceOp::kAverage) {
      for (Tensor& tensor : inputs) {
        tensor.device().scale(tensor, tensor, round_to(tensor.dtype(), 1.0 / size_));
      }
    }
    ring_reduce(inputs, record.reduce_op);
  }
  const auto put = [](const Call& to, std::int64_t at, const std::byte* from, std::int64_t bytes) {
    std::memcpy(to.output.data() + at, from, static_cast<std::size_t>(bytes));
  };
  for (const Call& to : calls) {
    switch (record.op) {
      case OpType::kReduce:
        if (to.rank != record.root) break;
        [[fallthrough]];
      case OpType::kAllreduce:
        put(to, 0, inputs.front().data(), record.bytes);
        break;
      case OpType::kReduceScatter:
        put(to, 0, inputs.front().data() + to.rank * to.output.nbytes(), to.output.nbytes());
        break;
      case OpType::kBroadcast:
        put(to, 0, inputs[static_cast<std::size_t>(record.root)].data(), record.bytes);
        break;
      case OpType::kAllgather:
        for (std::size_t r = 0; r < inputs.size(); ++r) {
          put(to, static_cast<std::int64_t>(r) * record.bytes, inputs[r].data(), record.bytes);
        }
        break;
      case OpType::kAlltoall: {
        std::int64_t at = 0;
        for (std::size_t r = 0; r < inputs.size(); ++r) {
          const std::vector<std::int64_t>& sizes = calls[r].record.splits->input;
          const std::int64_t before =
              std::accumulate(sizes.begin(), sizes.begin() + to.rank, std::int64_t{0});
          const auto width = static_cast<std::int64_t>(element);
          const std::int64_t bytes = sizes[static_cast<std::size_t>(to.rank)] * width;
          if (bytes > 0) put(to, at, inputs[r].data() + before * width, bytes);
          at += bytes;
        }
        break;
      }
      case OpType::kRecv:
        for (std::size_t i = 0; i < calls.size(); ++i) {
          if (calls[i].record.op == OpType::kSend) put(to, 0, inputs[i].data(), record.bytes);
        }
        break;
      case OpType::kSend:
      case OpType::kBarrier:
        break;
    }
  }
}

void ThreadWorld::wait(int rank, const Key& key) {
  std::unique_lock lock(mutex_);
  const std::shared_ptr<Collective> collective = collectives_.at(key);
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

bool ThreadWorld::is_done(const Key& key) {
  const std::lock_guard lock(mutex_);
  return collectives_.at(key)->done;
}

void ThreadWorld::abort(int rank, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (!aborted_) aborted_ = {rank, reason};
  changed_.notify_all();
}

WorkPtr ThreadProcessGroup::issue(const CollectiveRecord& record, Tensor input, Tensor output) {
  world_.issue({rank(), record, shared_flight_recorder(), std::move(input), std::move(output)});
  return std::make_shared<ThreadWork>(world_, rank(), record);
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

WorkPtr ThreadProcessGroup::do_reduce(Tensor tensor, int, ReduceOp,
                                      const CollectiveRecord& record) {
  return issue(record, tensor, tensor);
}
WorkPtr ThreadProcessGroup::do_reduce_scatter(Tensor output, Tensor input, ReduceOp,
                                              const CollectiveRecord& record) {
  return issue(record, std::move(input), std::move(output));
}
WorkPtr ThreadProcessGroup::do_alltoall(Tensor output, Tensor input,
                                        const CollectiveRecord& record) {
  return issue(record, std::move(input), std::move(output));
}
WorkPtr ThreadProcessGroup::do_send(Tensor tensor, int, const CollectiveRecord& record) {
  return issue(record, std::move(tensor), {});
}
WorkPtr ThreadProcessGroup::do_recv(Tensor tensor, int, const CollectiveRecord& record) {
  return issue(record, tensor, tensor);
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
