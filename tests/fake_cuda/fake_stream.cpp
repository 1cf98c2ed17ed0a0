#include "tests/fake_cuda/fake_stream.hpp"

#include <utility>

namespace gradsync::test {

FakeStream::~FakeStream() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void FakeStream::put(std::function<void()> operation) {
  const std::lock_guard lock(mutex_);
  operations_.push_back(std::move(operation));
  changed_.notify_all();
}

void FakeStream::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return operations_.empty() && !busy_; });
}

void FakeStream::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !operations_.empty(); });
    if (operations_.empty()) return;
    const std::function<void()> operation = std::move(operations_.front());
    operations_.pop_front();
    busy_ = true;
    lock.unlock();
    operation();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace gradsync::test
