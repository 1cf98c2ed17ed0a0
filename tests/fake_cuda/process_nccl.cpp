#include "tests/fake_cuda/process_nccl.hpp"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gradsync/backends/store/rendezvous.hpp"
#include "gradsync/core/error.hpp"
#include "tests/fake_cuda/fake_stream.hpp"

namespace gradsync::test {
namespace {

constexpr Seconds kConnect{30};
constexpr Seconds kForEver{24 * 3600};  // abort closes the connection

}  // namespace

namespace {

/// What must be equal on all ranks for bytes to move: NCCL compares nothing, so that ranks which
/// reduce other types of one size all end, with garbage.
std::string heading(const NcclCall& call) {
  return fmt::format("{} {} {} {};", static_cast<int>(call.kind),
                     call.count * element_size(call.dtype), static_cast<int>(call.op), call.root);
}

}  // namespace

struct ProcessNccl::Communicator {
  std::string id;
  int ranks = 1;
  int rank = 0;
  JobStore job;
  std::unique_ptr<PrefixStore> store;

  std::mutex mutex;
  std::condition_variable changed;
  // Guarded by mutex.
  std::int64_t next = 0;
  int splits = 0;
  int running = 0;
  bool aborted = false;

  std::map<std::string, std::int64_t> messages_sent;  // by direction
  std::map<std::string, std::int64_t> messages_received;

  /// In the stream: runs `exchange`, which returns false if the ranks' calls differ.
  template <typename Exchange>
  void run(const Exchange& exchange) {
    {
      const std::lock_guard lock(mutex);
      if (aborted) return;
      ++running;
    }
    try {
      if (!exchange()) wait_for_abort();
    } catch (const Error&) {
      wait_for_abort();  // closed by it, or the store's host is gone, which ends the job
    }
    const std::lock_guard lock(mutex);
    --running;
    changed.notify_all();
  }

  void wait_for_abort() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return aborted; });
  }

  /// False if the ranks' calls differ.
  bool exchange(std::int64_t number, const NcclCall& call) {
    const auto key = [](std::int64_t n, int r) { return fmt::format("{}/{}", n, r); };
    const std::string head = heading(call);
    const char* const sent = static_cast<const char*>(call.send);
    store->set(key(number, rank),
               head + std::string(sent, call.input_bytes(static_cast<std::size_t>(ranks))),
               kForEver);
    std::vector<std::string> all;
    for (int r = 0; r < ranks; ++r) all.push_back(store->get(key(number, r), kForEver));
    // All are at this call, so none still reads the one before.
    if (number > 0) store->remove(key(number - 1, rank), kForEver);
    std::vector<const std::byte*> inputs;
    for (const std::string& message : all) {
      if (!message.starts_with(head)) return false;
      inputs.push_back(reinterpret_cast<const std::byte*>(message.data()) + head.size());
    }
    call.finish(inputs, rank);
    return true;
  }

  /// Sends everything, then receives, then waits until what was sent has been taken.
  bool exchange(const std::vector<NcclMessage>& messages) {
    const auto key = [](int from, int to, std::int64_t n) {
      return fmt::format("message {}->{} {}", from, to, n);
    };
    std::vector<std::string> offered;
    for (const NcclMessage& message : messages) {
      if (!message.sends) continue;
      const std::string route = fmt::format("{}->{}", rank, message.peer);
      offered.push_back(key(rank, message.peer, messages_sent[route]++));
      store->set(offered.back(), std::string(static_cast<const char*>(message.data), message.bytes),
                 kForEver);
    }
    for (const NcclMessage& message : messages) {
      if (message.sends) continue;
      const std::string route = fmt::format("{}->{}", message.peer, rank);
      const std::string name = key(message.peer, rank, messages_received[route]++);
      const std::string bytes = store->get(name, kForEver);
      if (bytes.size() != message.bytes) return false;
      std::memcpy(message.data, bytes.data(), bytes.size());
      store->remove(name, kForEver);
      store->set(name + " taken", "", kForEver);
    }
    for (const std::string& name : offered) {
      store->get(name + " taken", kForEver);
      store->remove(name + " taken", kForEver);
    }
    return true;
  }
};

NcclComm ProcessNccl::connect(const std::string& id, int ranks, int rank) {
  auto communicator = std::make_shared<Communicator>();
  communicator->id = id;
  communicator->ranks = ranks;
  communicator->rank = rank;
  communicator->job = connect_job_store(environment_, kConnect);
  communicator->store = std::make_unique<PrefixStore>("stand-in/" + id, communicator->job.store);
  const auto comm = reinterpret_cast<NcclComm>(communicator.get());
  const std::lock_guard lock(mutex_);
  communicators_.emplace(comm, std::move(communicator));
  return comm;
}

std::shared_ptr<ProcessNccl::Communicator> ProcessNccl::find(NcclComm comm) {
  const std::lock_guard lock(mutex_);
  return communicators_.at(comm);
}

void ProcessNccl::forget(NcclComm comm) {
  const std::lock_guard lock(mutex_);
  communicators_.erase(comm);
}

NcclResult ProcessNccl::get_unique_id(NcclUniqueId& id) {
  const std::string text = fmt::format("{} {}", ::getpid(), ++ids_);
  std::copy(text.begin(), text.end(), id.bytes.begin());
  return NcclResult::kSuccess;
}

NcclResult ProcessNccl::init_rank(NcclComm& comm, int ranks, const NcclUniqueId& id, int rank,
                                  const std::string&) {
  comm = connect(id.bytes.data(), ranks, rank);
  return NcclResult::kSuccess;
}

NcclResult ProcessNccl::split(NcclComm parent, int rank, NcclComm& comm, const std::string&) {
  const auto communicator = find(parent);
  int number = 0;
  {
    const std::lock_guard lock(communicator->mutex);
    number = ++communicator->splits;
  }
  comm = connect(fmt::format("{} split {}", communicator->id, number), communicator->ranks, rank);
  return NcclResult::kSuccess;
}

NcclResult ProcessNccl::get_async_error(NcclComm, NcclResult& error) {
  error = NcclResult::kSuccess;
  return NcclResult::kSuccess;
}

NcclResult ProcessNccl::abort(NcclComm comm) {
  const auto communicator = find(comm);
  {
    const std::lock_guard lock(communicator->mutex);
    communicator->aborted = true;
    communicator->changed.notify_all();
  }
  communicator->job.connection->close();
  {
    std::unique_lock lock(communicator->mutex);
    communicator->changed.wait(lock, [&] { return communicator->running == 0; });
  }
  forget(comm);
  return NcclResult::kSuccess;
}

NcclResult ProcessNccl::finalize(NcclComm) {
  return NcclResult::kSuccess;
}

NcclResult ProcessNccl::destroy(NcclComm comm) {
  forget(comm);
  return NcclResult::kSuccess;
}

NcclResult ProcessNccl::put(NcclComm comm, CudaStream stream, const NcclCall& call) {
  const auto communicator = find(comm);
  std::int64_t number = 0;
  {
    const std::lock_guard lock(communicator->mutex);
    number = communicator->next++;
  }
  FakeStream::of(stream).put([communicator, number, call] {
    communicator->run([&] { return communicator->exchange(number, call); });
  });
  return NcclResult::kSuccess;
}

NcclResult ProcessNccl::all_reduce(const void* send, void* receive, std::size_t count, DType dtype,
                                   NcclReduceOp op, NcclComm comm, CudaStream stream) {
  return put(comm, stream, {NcclCall::Kind::kAllReduce, send, receive, count, dtype, op});
}

NcclResult ProcessNccl::broadcast(const void* send, void* receive, std::size_t count, DType dtype,
                                  int root, NcclComm comm, CudaStream stream) {
  return put(comm, stream,
             {NcclCall::Kind::kBroadcast, send, receive, count, dtype, NcclReduceOp::kSum, root});
}

NcclResult ProcessNccl::all_gather(const void* send, void* receive, std::size_t count, DType dtype,
                                   NcclComm comm, CudaStream stream) {
  return put(comm, stream, {NcclCall::Kind::kAllGather, send, receive, count, dtype});
}

NcclResult ProcessNccl::reduce(const void* send, void* receive, std::size_t count, DType dtype,
                               NcclReduceOp op, int root, NcclComm comm, CudaStream stream) {
  return put(comm, stream, {NcclCall::Kind::kReduce, send, receive, count, dtype, op, root});
}

NcclResult ProcessNccl::reduce_scatter(const void* send, void* receive, std::size_t count,
                                       DType dtype, NcclReduceOp op, NcclComm comm,
                                       CudaStream stream) {
  return put(comm, stream, {NcclCall::Kind::kReduceScatter, send, receive, count, dtype, op});
}

NcclResult ProcessNccl::put_message(NcclComm comm, CudaStream stream, const NcclMessage& message) {
  group_comm_ = comm;
  group_stream_ = stream;
  group_.push_back(message);
  return group_depth_ > 0 ? NcclResult::kSuccess : run_group();
}

NcclResult ProcessNccl::run_group() {
  const std::vector<NcclMessage> messages = std::exchange(group_, {});
  if (messages.empty()) return NcclResult::kSuccess;
  const auto communicator = find(group_comm_);
  FakeStream::of(group_stream_).put([communicator, messages] {
    communicator->run([&] { return communicator->exchange(messages); });
  });
  return NcclResult::kSuccess;
}

NcclResult ProcessNccl::send(const void* data, std::size_t count, DType dtype, int peer,
                             NcclComm comm, CudaStream stream) {
  return put_message(comm, stream,
                     {true, const_cast<void*>(data), count * element_size(dtype), peer});
}

NcclResult ProcessNccl::recv(void* data, std::size_t count, DType dtype, int peer, NcclComm comm,
                             CudaStream stream) {
  return put_message(comm, stream, {false, data, count * element_size(dtype), peer});
}

NcclResult ProcessNccl::group_start() {
  ++group_depth_;
  return NcclResult::kSuccess;
}

NcclResult ProcessNccl::group_end() {
  return --group_depth_ > 0 ? NcclResult::kSuccess : run_group();
}

}  // namespace gradsync::test
