#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include <gloo/context.h>

#include "gradsync/comm/comm_error.hpp"
#include "gradsync/comm/work.hpp"

namespace gradsync {

/// A collective executed by a communication thread. Keeps its tensors alive (in `operation`) until
/// it completes.
class GlooWork final : public Work {
 public:
  /// The transfer, run once the ranks have agreed on the signature. `context` creates buffers with
  /// the collective's deadline; `tag` separates its messages from all others.
  using Operation =
      std::function<void(const std::shared_ptr<gloo::Context>& context, std::uint32_t tag)>;

  GlooWork(CollectiveRecord record, Operation operation)
      : record_(std::move(record)), operation_(std::move(operation)) {}

  const CollectiveRecord& record() const noexcept { return record_; }
  const Operation& operation() const noexcept { return operation_; }

  /// Called once, by the communication thread.
  void finish(std::optional<CommError> error) {
    operation_ = nullptr;
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
      error_ = std::move(error);
    }
    changed_.notify_all();
  }

  /// Cannot block forever: every transfer of a collective has a deadline.
  void wait() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_; });
    if (error_) throw *error_;
  }

  bool is_completed() const override {
    const std::lock_guard lock(mutex_);
    return done_;
  }

 private:
  const CollectiveRecord record_;
  Operation operation_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::optional<CommError> error_;
};

}  // namespace gradsync
