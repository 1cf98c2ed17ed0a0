#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "gradsync/backends/cuda/cuda_api.hpp"

namespace gradsync::test {

/// A stream of the stand-in: what is put into it runs in order, on a thread of its own, while the
/// host goes on. What it does is slow and right; what it shows is who waited for whom.
class FakeStream {
 public:
  FakeStream() : thread_([this] { run(); }) {}
  /// Runs what is left.
  ~FakeStream();
  FakeStream(const FakeStream&) = delete;
  FakeStream& operator=(const FakeStream&) = delete;

  static FakeStream& of(CudaStream stream) { return *reinterpret_cast<FakeStream*>(stream); }
  CudaStream handle() { return reinterpret_cast<CudaStream>(this); }

  void put(std::function<void()> operation);
  /// Waits until everything that is in it now is done.
  void drain();

  void count_launch() { ++launches_; }
  std::int64_t launches() const noexcept { return launches_; }

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> operations_;
  bool busy_ = false;
  bool stopping_ = false;
  std::atomic<std::int64_t> launches_{0};
  std::thread thread_;
};

/// Holds a stream up until the test opens it.
class Gate {
 public:
  explicit Gate(FakeStream& stream) {
    stream.put([state = state_] {
      std::unique_lock lock(state->mutex);
      state->changed.wait(lock, [&] { return state->open; });
    });
  }
  ~Gate() { open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void open() {
    const std::lock_guard lock(state_->mutex);
    state_->open = true;
    state_->changed.notify_all();
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace gradsync::test
