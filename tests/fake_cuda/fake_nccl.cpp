#include "tests/fake_cuda/fake_nccl.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gradsync/comm/reduce_functions.hpp"
#include "gradsync/core/error.hpp"
#include "gradsync/tensor/element.hpp"
#include "tests/fake_cuda/fake_stream.hpp"

namespace gradsync::test {

struct FakeNccl::Call {
  enum class Kind { kAllReduce, kBroadcast, kAllGather };
  Kind kind;
  const void* send;
  void* receive;
  std::size_t count;
  DType dtype;
  NcclReduceOp op = NcclReduceOp::kSum;
  int root = 0;

  bool meets(const Call& other) const {
    return kind == other.kind && count == other.count && dtype == other.dtype && op == other.op &&
           root == other.root;
  }
};

struct FakeNcclNetwork::Impl {
  struct Collective {
    std::vector<std::optional<FakeNccl::Call>> calls;  // by rank
    int arrived = 0;
    bool done = false;
  };
  /// The ranks that share a unique id.
  struct Ring {
    explicit Ring(int size) : ranks(size) {}
    int ranks;
    int joined = 0;
    std::map<int, int> splits;  // how many ranks have called the n-th
    std::map<std::int64_t, Collective> collectives;
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

  void run(std::int64_t number, const Call& call);
};

namespace {

void scale_by_inverse(std::byte* data, std::size_t count, DType dtype, std::size_t ranks) {
  with_floating_type(dtype, "average", [&](auto tag) {
    using T = decltype(tag);
    using Math = MathType<T>;
    const Math factor = static_cast<Math>(static_cast<T>(Math{1} / static_cast<Math>(ranks)));
    T* const elements = reinterpret_cast<T*>(data);
    for (std::size_t i = 0; i < count; ++i) {
      elements[i] = static_cast<T>(static_cast<Math>(elements[i]) * factor);
    }
  });
}

}  // namespace

std::vector<std::byte> nccl_ring_allreduce(const std::vector<const std::byte*>& inputs,
                                           std::size_t count, DType dtype, NcclReduceOp op) {
  const std::size_t ranks = inputs.size(), size = element_size(dtype);
  std::vector<std::vector<std::byte>> values;
  for (const std::byte* input : inputs) {
    values.emplace_back(input, input + count * size);
    if (op == NcclReduceOp::kAverage) scale_by_inverse(values.back().data(), count, dtype, ranks);
  }
  const ReduceFunction reduce = reduce_function(op == NcclReduceOp::kMax   ? ReduceOp::kMax
                                                : op == NcclReduceOp::kMin ? ReduceOp::kMin
                                                                           : ReduceOp::kSum,
                                                dtype);
  std::vector<std::byte> result(count * size);
  const std::size_t align = std::max<std::size_t>(1, 16 / size);
  const std::size_t chunk = ((count + ranks - 1) / ranks + align - 1) / align * align;
  for (std::size_t c = 0; c < ranks; ++c) {
    const std::size_t begin = std::min(count, c * chunk), end = std::min(count, begin + chunk);
    if (begin == end) continue;
    std::byte* const sum = result.data() + begin * size;
    std::memcpy(sum, values[(c + 1) % ranks].data() + begin * size, (end - begin) * size);
    for (std::size_t hop = 2; hop <= ranks; ++hop) {
      reduce(sum, values[(c + hop) % ranks].data() + begin * size, sum, end - begin);
    }
  }
  return result;
}

/// In the stream: waits for the others, as a kernel does.
void FakeNccl::Communicator::run(std::int64_t number, const Call& call) {
  std::unique_lock lock(network->mutex);
  ++running;
  auto& collective = ring->collectives[number];
  collective.calls.resize(static_cast<std::size_t>(ring->ranks));
  collective.calls[static_cast<std::size_t>(rank)] = call;
  if (++collective.arrived == ring->ranks) {
    const bool all_meet = std::all_of(collective.calls.begin(), collective.calls.end(),
                                      [&](const auto& other) { return other->meets(call); });
    if (all_meet) {
      const std::size_t bytes = call.count * element_size(call.dtype);
      std::vector<const std::byte*> inputs;
      for (const auto& of_rank : collective.calls) {
        inputs.push_back(static_cast<const std::byte*>(of_rank->send));
      }
      std::vector<std::byte> result;
      if (call.kind == Call::Kind::kAllReduce) {
        result = nccl_ring_allreduce(inputs, call.count, call.dtype, call.op);
      } else if (call.kind == Call::Kind::kBroadcast) {
        const std::byte* const root = inputs[static_cast<std::size_t>(call.root)];
        result.assign(root, root + bytes);
      } else {
        for (const std::byte* input : inputs) result.insert(result.end(), input, input + bytes);
      }
      for (const auto& of_rank : collective.calls) {
        std::memcpy(of_rank->receive, result.data(), result.size());
      }
      collective.done = true;
    }
  }
  network->changed.notify_all();
  network->changed.wait(lock, [&] { return collective.done || aborted; });
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

NcclResult FakeNccl::put(NcclComm comm, CudaStream stream, const Call& call) {
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
  return put(comm, stream, {Call::Kind::kAllReduce, send, receive, count, dtype, op});
}

NcclResult FakeNccl::broadcast(const void* send, void* receive, std::size_t count, DType dtype,
                               int root, NcclComm comm, CudaStream stream) {
  return put(comm, stream,
             {Call::Kind::kBroadcast, send, receive, count, dtype, NcclReduceOp::kSum, root});
}

NcclResult FakeNccl::all_gather(const void* send, void* receive, std::size_t count, DType dtype,
                                NcclComm comm, CudaStream stream) {
  return put(comm, stream, {Call::Kind::kAllGather, send, receive, count, dtype});
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
