#include "tests/fake_cuda/fake_cuda.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"
#include "gradsync/tensor/cpu_blas.hpp"

namespace gradsync::test {

/// As in CUDA: whoever waits, waits for the event as it was recorded last before the wait.
struct FakeCuda::Event {
  std::mutex mutex;
  std::condition_variable changed;
  std::int64_t recorded = 0;  // by the host
  std::int64_t done = 0;      // by the stream
  std::chrono::steady_clock::time_point time;
};

FakeCuda::~FakeCuda() {
  streams_.clear();  // they finish first
  for (const auto& [memory, nbytes] : blocks_) std::free(memory);
}

FakeStream& FakeCuda::stream(std::size_t index) {
  const std::lock_guard lock(mutex_);
  for (const auto& stream : streams_) {
    if (stream && index-- == 0) return *stream;
  }
  throw Error(ErrorCode::kInternal, "stand-in: there is no such stream");
}

CudaDeviceInfo FakeCuda::device_info(int) {
  CudaDeviceInfo info;
  info.name = "stand-in of the tests";
  info.pci_id = fmt::format("0000:{:02x}:00.0", number_);
  info.major = 9;
  info.multiprocessors = 1;
  info.memory = memory_;
  return info;
}

CudaStream FakeCuda::create_stream(bool high_priority) {
  const std::lock_guard lock(mutex_);
  streams_.push_back(std::make_unique<FakeStream>());
  high_priority_.push_back(high_priority);
  return streams_.back()->handle();
}

void FakeCuda::destroy_stream(CudaStream stream) noexcept {
  std::unique_ptr<FakeStream> ended;
  const std::lock_guard lock(mutex_);
  for (auto& candidate : streams_) {
    if (candidate && candidate->handle() == stream) ended = std::move(candidate);
  }
}

CudaEvent FakeCuda::create_event() {
  auto event = std::make_shared<Event>();
  const auto handle = reinterpret_cast<CudaEvent>(event.get());
  const std::lock_guard lock(mutex_);
  events_.emplace(handle, std::move(event));
  return handle;
}

void FakeCuda::destroy_event(CudaEvent event) noexcept {
  const std::lock_guard lock(mutex_);
  events_.erase(event);
}

std::shared_ptr<FakeCuda::Event> FakeCuda::find(CudaEvent event) {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(event);
  if (found == events_.end()) {
    throw Error(ErrorCode::kInternal, "stand-in: an event that was destroyed, or never made");
  }
  return found->second;
}

void FakeCuda::record(CudaEvent handle, CudaStream stream) {
  const auto event = find(handle);
  std::int64_t number = 0;
  {
    const std::lock_guard lock(event->mutex);
    number = ++event->recorded;
  }
  FakeStream::of(stream).put([event, number] {
    const std::lock_guard lock(event->mutex);
    event->done = std::max(event->done, number);
    event->time = std::chrono::steady_clock::now();
    event->changed.notify_all();
  });
}

void FakeCuda::wait(CudaStream stream, CudaEvent handle) {
  bool is_communication = false;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      if (streams_[i] && streams_[i]->handle() == stream) is_communication = high_priority_[i];
    }
  }
  if (mutation_ == (is_communication ? Mutation::kForgetInputs : Mutation::kForgetResult)) return;
  const auto event = find(handle);
  std::int64_t number = 0;
  {
    const std::lock_guard lock(event->mutex);
    number = event->recorded;
  }
  FakeStream::of(stream).put([event, number] {
    std::unique_lock lock(event->mutex);
    event->changed.wait(lock, [&] { return event->done >= number; });
  });
}

bool FakeCuda::is_done(CudaEvent handle) {
  const auto event = find(handle);
  const std::lock_guard lock(event->mutex);
  const bool done = event->done >= event->recorded;
  if (!done) ++host_waits_;
  return done;
}

Seconds FakeCuda::elapsed(CudaEvent begin, CudaEvent end) {
  const auto time_of = [this](CudaEvent handle) {
    const auto event = find(handle);
    const std::lock_guard lock(event->mutex);
    if (event->done < event->recorded || event->recorded == 0) {
      throw Error(ErrorCode::kInternal, "stand-in: the time of an event that is not done");
    }
    return event->time;
  };
  return time_of(end) - time_of(begin);
}

void* FakeCuda::allocate(Bytes nbytes) {
  const std::lock_guard lock(mutex_);
  if (allocated_ + nbytes > memory_) return nullptr;
  constexpr std::size_t kAlignment = 256;
  const auto size = (static_cast<std::size_t>(nbytes) + kAlignment - 1) / kAlignment * kAlignment;
  void* const memory = std::aligned_alloc(kAlignment, size);
  std::memset(memory, 0xff, size);  // NaN, whatever the type
  blocks_.emplace(memory, nbytes);
  allocated_ += nbytes;
  return memory;
}

void FakeCuda::drain_all() {
  std::vector<FakeStream*> streams;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& stream : streams_) {
      if (stream) streams.push_back(stream.get());
    }
  }
  for (FakeStream* stream : streams) stream->drain();
}

void FakeCuda::release(void* memory) noexcept {
  drain_all();
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(memory);
  if (found == blocks_.end()) return;
  allocated_ -= found->second;
  std::free(memory);
  blocks_.erase(found);
}

void* FakeCuda::allocate_pinned(Bytes nbytes) {
  return std::malloc(static_cast<std::size_t>(nbytes));
}

void FakeCuda::release_pinned(void* memory) noexcept {
  drain_all();
  std::free(memory);
}

void FakeCuda::copy(void* dst, const void* src, Bytes nbytes, CudaStream stream) {
  FakeStream::of(stream).put([=] { std::memmove(dst, src, static_cast<std::size_t>(nbytes)); });
}

void FakeCuda::clear(void* dst, Bytes nbytes, CudaStream stream) {
  FakeStream::of(stream).put([=] { std::memset(dst, 0, static_cast<std::size_t>(nbytes)); });
}

namespace {

template <typename T>
void multiply_on_cpu(const MatrixProduct& p) {
  const auto matrix = [](const MatrixOperand& operand, std::int64_t index) {
    return cpu::Matrix<const T>{static_cast<const T*>(operand.data) + index * operand.batch_stride,
                                operand.stride};
  };
  const auto op = [](const MatrixOperand& operand) {
    return operand.transposed ? cpu::Op::kTranspose : cpu::Op::kNone;
  };
  for (std::int64_t i = 0; i < p.batch; ++i) {
    cpu::gemm(op(p.a), op(p.b), p.m, p.n, p.k, static_cast<T>(p.alpha), matrix(p.a, i),
              matrix(p.b, i), static_cast<T>(p.beta),
              {static_cast<T*>(p.c) + i * p.c_batch_stride, p.c_stride});
  }
}

}  // namespace

void FakeCublas::multiply(const MatrixProduct& product, CudaStream stream) {
  FakeStream::of(stream).put([product] {
    if (product.dtype == DType::kFloat64) {
      multiply_on_cpu<double>(product);
    } else {
      multiply_on_cpu<float>(product);
    }
  });
}

}  // namespace gradsync::test
