#include "tests/fake_cuda/fake_nccl.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"
#include "tests/fake_cuda/fake_stream.hpp"

namespace gradsync::test {

namespace {

bool alike(const NcclCall& a, const NcclCall& b) {
  return a.kind == b.kind && a.count == b.count && a.dtype == b.dtype && a.op == b.op &&
         a.root == b.root;
}

}  // namespace

struct FakeNcclNetwork::Impl {
  struct Collective {
    std::vector<std::optional<NcclCall>> calls;  // by rank
    int arrived = 0;
    bool done = false;
  };
  /// A message that its sender offers until the receiver takes it.
  struct Letter {
    const NcclMessage* message;
    bool taken = false;
  };
  /// The ranks that share a unique id.
  struct Ring {
    explicit Ring(int size) : ranks(size) {}
    int ranks;
    int joined = 0;
    std::map<int, int> splits;  // how many ranks have called the n-th
    std::map<std::int64_t, Collective> collectives;
    std::map<std::pair<int, int>, std::deque<std::shared_ptr<Letter>>> letters;  // by from, to
  };

  std::mutex mutex;
  std::condition_variable changed;
  int ids = 0;
  std::map<std::string, std::shared_ptr<Ring>> rings;
};

FakeNcclNetwork::FakeNcclNetwork() : impl_(std::make_shared<Impl>()) {}
FakeNcclNetwork::~FakeNcclNetwork() = default;

struct FakeNccl::Communicator {
  std::shared_ptr<FakeNcclNetwork::Impl> network;
  std::shared_ptr<FakeNcclNetwork::Impl::Ring> ring;
  std::string id;
  int rank = 0;
  // Guarded by the network's mutex.
  std::int64_t next = 0;
  int running = 0;
  bool aborted = false;
  int splits = 0;
  NcclComm* split_off = nullptr;  // where the handle goes once all ranks have called
  int split_rank = 0;
  std::atomic<int> looks_left{0};

  void run(std::int64_t number, const NcclCall& call);
  void exchange(const std::vector<NcclMessage>& messages);
};

/// In the stream: waits for the others, as a kernel does.
void FakeNccl::Communicator::run(std::int64_t number, const NcclCall& call) {
  std::unique_lock lock(network->mutex);
  ++running;
  auto& collective = ring->collectives[number];
  collective.calls.resize(static_cast<std::size_t>(ring->ranks));
  collective.calls[static_cast<std::size_t>(rank)] = call;
  if (++collective.arrived == ring->ranks) {
    const bool all_meet = std::all_of(collective.calls.begin(), collective.calls.end(),
                                      [&](const auto& other) { return alike(*other, call); });
    if (all_meet) {
      std::vector<std::vector<std::byte>> copies;
      std::vector<const std::byte*> inputs;
      for (const auto& of_rank : collective.calls) {
        const auto* const from = static_cast<const std::byte*>(of_rank->send);
        copies.emplace_back(from, from + call.input_bytes(collective.calls.size()));
      }
      for (const auto& copy : copies) inputs.push_back(copy.data());
      for (int r = 0; r < ring->ranks; ++r) {
        collective.calls[static_cast<std::size_t>(r)]->finish(inputs, r);
      }
      collective.done = true;
    }
  }
  network->changed.notify_all();
  network->changed.wait(lock, [&] { return collective.done || aborted; });
  --running;
  network->changed.notify_all();
}

/// In the stream: all messages at once. A message of another size than the receiver's waits for
/// ever.
void FakeNccl::Communicator::exchange(const std::vector<NcclMessage>& messages) {
  using Letter = FakeNcclNetwork::Impl::Letter;
  std::unique_lock lock(network->mutex);
  ++running;
  std::vector<std::shared_ptr<Letter>> offered;
  for (const NcclMessage& message : messages) {
    if (!message.sends) continue;
    offered.push_back(std::make_shared<Letter>(Letter{&message}));
    ring->letters[{rank, message.peer}].push_back(offered.back());
  }
  network->changed.notify_all();
  for (const NcclMessage& message : messages) {
    if (message.sends) continue;
    auto& letters = ring->letters[{message.peer, rank}];
    network->changed.wait(lock, [&] {
      return aborted || (!letters.empty() && letters.front()->message->bytes == message.bytes);
    });
    if (aborted) break;
    std::memcpy(message.data, letters.front()->message->data, message.bytes);
    letters.front()->taken = true;
    letters.pop_front();
    network->changed.notify_all();
  }
  network->changed.wait(lock, [&] {
    return aborted ||
           std::ranges::all_of(offered, [](const auto& letter) { return letter->taken; });
  });
  // Whoever has not taken a message of an aborted rank never will.
  for (auto& [route, letters] : ring->letters) {
    if (route.first != rank) continue;
    std::erase_if(letters, [&](const auto& letter) {
      return std::ranges::find(offered, letter) != offered.end();
    });
  }
  --running;
  network->changed.notify_all();
}

NcclResult FakeNccl::get_unique_id(NcclUniqueId& id) {
  const std::lock_guard lock(network_->mutex);
  const std::string text = fmt::format("ring {}", ++network_->ids);
  std::copy(text.begin(), text.end(), id.bytes.begin());
  return NcclResult::kSuccess;
}

NcclResult FakeNccl::init_rank(NcclComm& comm, int ranks, const NcclUniqueId& id, int rank,
                               const std::string&) {
  comm = join_ring(id.bytes.data(), ranks, rank);
  return NcclResult::kInProgress;
}

NcclComm FakeNccl::join_ring(const std::string& id, int ranks, int rank) {
  auto communicator = std::make_shared<Communicator>();
  communicator->network = network_;
  communicator->id = id;
  communicator->rank = rank;
  {
    const std::lock_guard lock(network_->mutex);
    auto& ring = network_->rings[id];
    if (!ring) ring = std::make_shared<FakeNcclNetwork::Impl::Ring>(ranks);
    if (!faults.creation_stays_in_progress) ++ring->joined;
    communicator->ring = ring;
  }
  const auto comm = reinterpret_cast<NcclComm>(communicator.get());
  const std::lock_guard lock(mutex_);
  communicators_.emplace(comm, std::move(communicator));
  return comm;
}

/// As since NCCL 2.23: the handle is there when the parent is no longer in progress.
NcclResult FakeNccl::split(NcclComm parent, int rank, NcclComm& comm, const std::string&) {
  const auto communicator = find(parent);
  ++splits_;
  const std::lock_guard lock(network_->mutex);
  ++communicator->ring->splits[++communicator->splits];
  communicator->split_off = &comm;
  communicator->split_rank = rank;
  return NcclResult::kInProgress;
}

std::shared_ptr<FakeNccl::Communicator> FakeNccl::find(NcclComm comm) {
  const std::lock_guard lock(mutex_);
  const auto found = communicators_.find(comm);
  if (found == communicators_.end()) {
    throw Error(ErrorCode::kInternal, "stand-in: a communicator that was freed, or never made");
  }
  return found->second;
}

NcclResult FakeNccl::get_async_error(NcclComm comm, NcclResult& error) {
  const auto communicator = find(comm);
  if (faults.creation_fails.load() != NcclResult::kSuccess) {
    error = faults.creation_fails;
    return NcclResult::kSuccess;
  }
  error = faults.async_error;
  if (communicator->looks_left > 0) {
    --communicator->looks_left;
    error = NcclResult::kInProgress;
  }
  std::unique_lock lock(network_->mutex);
  const auto& ring = *communicator->ring;
  if (ring.joined < ring.ranks) error = NcclResult::kInProgress;
  if (communicator->split_off != nullptr) {
    if (ring.splits.at(communicator->splits) < ring.ranks) {
      error = NcclResult::kInProgress;
    } else {
      NcclComm& split_off = *std::exchange(communicator->split_off, nullptr);
      const std::string id = fmt::format("{}, split {}", communicator->id, communicator->splits);
      lock.unlock();
      split_off = join_ring(id, ring.ranks, communicator->split_rank);
    }
  }
  return NcclResult::kSuccess;
}

NcclResult FakeNccl::abort(NcclComm comm) {
  const auto communicator = find(comm);
  ++aborts_;
  {
    std::unique_lock lock(network_->mutex);
    communicator->aborted = true;
    network_->changed.notify_all();
    network_->changed.wait(lock, [&] { return communicator->running == 0; });
  }
  const std::lock_guard lock(mutex_);
  communicators_.erase(comm);
  return NcclResult::kSuccess;
}

NcclResult FakeNccl::finalize(NcclComm comm) {
  static_cast<void>(find(comm));
  return NcclResult::kSuccess;
}

NcclResult FakeNccl::destroy(NcclComm comm) {
  static_cast<void>(find(comm));
  ++destroyed_;
  const std::lock_guard lock(mutex_);
  communicators_.erase(comm);
  return NcclResult::kSuccess;
}

NcclResult FakeNccl::put(NcclComm comm, CudaStream stream, const NcclCall& call) {
  const auto communicator = find(comm);
  const NcclResult failure = faults.next_call.exchange(NcclResult::kSuccess);
  if (failure != NcclResult::kSuccess) return failure;
  ++collectives_;
  std::int64_t number = 0;
  {
    const std::lock_guard lock(network_->mutex);
    number = communicator->next++;
  }
  FakeStream::of(stream).put([communicator, number, call] { communicator->run(number, call); });
  communicator->looks_left = faults.calls_stay_in_progress.load();
  return communicator->looks_left > 0 ? NcclResult::kInProgress : NcclResult::kSuccess;
}

NcclResult FakeNccl::all_reduce(const void* send, void* receive, std::size_t count, DType dtype,
                                NcclReduceOp op, NcclComm comm, CudaStream stream) {
  if (op == NcclReduceOp::kAverage) ++averages_;
  return put(comm, stream, {NcclCall::Kind::kAllReduce, send, receive, count, dtype, op});
}

NcclResult FakeNccl::broadcast(const void* send, void* receive, std::size_t count, DType dtype,
                               int root, NcclComm comm, CudaStream stream) {
  return put(comm, stream,
             {NcclCall::Kind::kBroadcast, send, receive, count, dtype, NcclReduceOp::kSum, root});
}

NcclResult FakeNccl::all_gather(const void* send, void* receive, std::size_t count, DType dtype,
                                NcclComm comm, CudaStream stream) {
  return put(comm, stream, {NcclCall::Kind::kAllGather, send, receive, count, dtype});
}

NcclResult FakeNccl::reduce(const void* send, void* receive, std::size_t count, DType dtype,
                            NcclReduceOp op, int root, NcclComm comm, CudaStream stream) {
  return put(comm, stream, {NcclCall::Kind::kReduce, send, receive, count, dtype, op, root});
}

NcclResult FakeNccl::reduce_scatter(const void* send, void* receive, std::size_t count, DType dtype,
                                    NcclReduceOp op, NcclComm comm, CudaStream stream) {
  return put(comm, stream, {NcclCall::Kind::kReduceScatter, send, receive, count, dtype, op});
}

NcclResult FakeNccl::put_message(NcclComm comm, CudaStream stream, const NcclMessage& message) {
  group_comm_ = comm;
  group_stream_ = stream;
  group_.push_back(message);
  return group_depth_ > 0 ? NcclResult::kSuccess : run_group();
}

NcclResult FakeNccl::run_group() {
  const std::vector<NcclMessage> messages = std::exchange(group_, {});
  if (messages.empty()) return NcclResult::kSuccess;
  const NcclResult failure = faults.next_call.exchange(NcclResult::kSuccess);
  if (failure != NcclResult::kSuccess) return failure;
  ++collectives_;
  const auto communicator = find(group_comm_);
  FakeStream::of(group_stream_).put([communicator, messages] { communicator->exchange(messages); });
  communicator->looks_left = faults.calls_stay_in_progress.load();
  return communicator->looks_left > 0 ? NcclResult::kInProgress : NcclResult::kSuccess;
}

NcclResult FakeNccl::send(const void* data, std::size_t count, DType dtype, int peer, NcclComm comm,
                          CudaStream stream) {
  return put_message(comm, stream,
                     {true, const_cast<void*>(data), count * element_size(dtype), peer});
}

NcclResult FakeNccl::recv(void* data, std::size_t count, DType dtype, int peer, NcclComm comm,
                          CudaStream stream) {
  return put_message(comm, stream, {false, data, count * element_size(dtype), peer});
}

NcclResult FakeNccl::group_start() {
  ++group_depth_;
  return NcclResult::kSuccess;
}

NcclResult FakeNccl::group_end() {
  return --group_depth_ > 0 ? NcclResult::kSuccess : run_group();
}

NcclResult FakeNccl::register_buffer(NcclComm comm, void* buffer, std::size_t, void*& handle) {
  static_cast<void>(find(comm));
  ++registered_;
  handle = buffer;
  return NcclResult::kSuccess;
}

NcclResult FakeNccl::deregister_buffer(NcclComm comm, void*) {
  static_cast<void>(find(comm));
  --registered_;
  return NcclResult::kSuccess;
}

void* FakeNccl::allocate(std::size_t nbytes) {
  return std::aligned_alloc(256, (nbytes + 255) / 256 * 256);
}

void FakeNccl::release(void* memory) noexcept {
  std::free(memory);
}

}  // namespace gradsync::test
