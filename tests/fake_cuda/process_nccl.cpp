#include "tests/fake_cuda/process_nccl.hpp"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "gradsync/backends/store/rendezvous.hpp"
#include "gradsync/core/error.hpp"
#include "tests/fake_cuda/fake_nccl.hpp"
#include "tests/fake_cuda/fake_stream.hpp"

namespace gradsync::test {
namespace {

constexpr Seconds kConnect{30};
constexpr Seconds kForEver{24 * 3600};  // abort closes the connection

}  // namespace

struct ProcessNccl::Call {
  enum class Kind { kAllReduce, kBroadcast, kAllGather };
  Kind kind;
  const void* send;
  void* receive;
  std::size_t count;
  DType dtype;
  NcclReduceOp op = NcclReduceOp::kSum;
  int root = 0;

  std::size_t bytes() const { return count * element_size(dtype); }
  /// What must be equal on all ranks for bytes to move: NCCL compares nothing, so that ranks which
  /// reduce other types of one size all end, with garbage.
  std::string heading() const {
    return fmt::format("{} {} {} {};", static_cast<int>(kind), bytes(), static_cast<int>(op), root);
  }
};

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

  void run(std::int64_t number, const Call& call) {
    {
      const std::lock_guard lock(mutex);
      if (aborted) return;
      ++running;
    }
    try {
      if (!exchange(number, call)) wait_for_abort();
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
  bool exchange(std::int64_t number, const Call& call) {
    const auto key = [](std::int64_t n, int r) { return fmt::format("{}/{}", n, r); };
    const std::string heading = call.heading();
    const char* const sent = static_cast<const char*>(call.send);
    store->set(key(number, rank), heading + std::string(sent, call.bytes()), kForEver);
    std::vector<std::string> all;
    for (int r = 0; r < ranks; ++r) all.push_back(store->get(key(number, r), kForEver));
    // All are at this call, so none still reads the one before.
    if (number > 0) store->remove(key(number - 1, rank), kForEver);
    std::vector<const std::byte*> inputs;
    for (const std::string& message : all) {
      if (!message.starts_with(heading)) return false;
      inputs.push_back(reinterpret_cast<const std::byte*>(message.data()) + heading.size());
    }
    auto* const receive = static_cast<std::byte*>(call.receive);
    if (call.kind == Call::Kind::kAllReduce) {
      const auto sum = nccl_ring_allreduce(inputs, call.count, call.dtype, call.op);
      std::copy(sum.begin(), sum.end(), receive);
    } else if (call.kind == Call::Kind::kBroadcast) {
      std::memcpy(receive, inputs[static_cast<std::size_t>(call.root)], call.bytes());
    } else {
      for (std::size_t r = 0; r < inputs.size(); ++r) {
        std::memcpy(receive + r * call.bytes(), inputs[r], call.bytes());
      }
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

NcclResult ProcessNccl::put(NcclComm comm, CudaStream stream, const Call& call) {
  const auto communicator = find(comm);
  std::int64_t number = 0;
  {
    const std::lock_guard lock(communicator->mutex);
    number = communicator->next++;
  }
  FakeStream::of(stream).put([communicator, number, call] { communicator->run(number, call); });
  return NcclResult::kSuccess;
}

NcclResult ProcessNccl::all_reduce(const void* send, void* receive, std::size_t count, DType dtype,
                                   NcclReduceOp op, NcclComm comm, CudaStream stream) {
  return put(comm, stream, {Call::Kind::kAllReduce, send, receive, count, dtype, op});
}

NcclResult ProcessNccl::broadcast(const void* send, void* receive, std::size_t count, DType dtype,
                                  int root, NcclComm comm, CudaStream stream) {
  return put(comm, stream,
             {Call::Kind::kBroadcast, send, receive, count, dtype, NcclReduceOp::kSum, root});
}

NcclResult ProcessNccl::all_gather(const void* send, void* receive, std::size_t count, DType dtype,
                                   NcclComm comm, CudaStream stream) {
  return put(comm, stream, {Call::Kind::kAllGather, send, receive, count, dtype});
}

}  // namespace gradsync::test
