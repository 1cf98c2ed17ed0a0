#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "gradsync/backends/cuda/cuda_device.hpp"
#include "gradsync/backends/store/failure.hpp"
#include "gradsync/comm/work.hpp"
#include "gradsync/tensor/tensor.hpp"

namespace gradsync {

/// The first failure of a job, shared by this rank's group and its works. Thread-safe.
class GroupFailure {
 public:
  /// Returns false if there already is a failure.
  bool set(const Failure& failure) {
    const std::lock_guard lock(mutex_);
    if (failure_) return false;
    failure_ = failure;
    failed_ = true;
    return true;
  }
  bool failed() const noexcept { return failed_; }
  std::optional<Failure> get() const {
    if (!failed_) return std::nullopt;
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  mutable std::mutex mutex_;
  std::atomic<bool> failed_{false};
  std::optional<Failure> failure_;
};

/// A collective on the communication stream, between two events. The watchdog polls it from another
/// thread.
class NcclWork final : public Work {
 public:
  NcclWork(const CollectiveRecord& record, int rank, CudaDevice& device, bool host_waits,
           std::vector<Tensor> tensors, std::shared_ptr<const GroupFailure> failure)
      : record_(record),
        rank_(rank),
        device_(device),
        host_waits_(host_waits),
        failure_(std::move(failure)),
        begin_(take_event(device.events())),
        end_(take_event(device.events())),
        tensors_(std::move(tensors)) {}

  const CollectiveRecord& record() const noexcept { return record_; }
  const EventPtr& begin() const noexcept { return begin_; }
  const EventPtr& end() const noexcept { return end_; }

  void wait() override {
    if (completed_) return;
    throw_if_failed();
    // From here on the compute stream is ordered after the collective, so the tensor memory may be
    // reused as soon as this rank releases it. The host continues immediately.
    device_.api().wait(device_.compute_stream(), end_.get());
    release_tensors();
    if (host_waits_) device_.wait_on_host(end_.get());
  }

  bool is_completed() const override {
    return completed_ || failure_->failed() || device_.api().is_done(end_.get());
  }

  // For the watchdog

  /// The collective succeeded; a later failure of the group no longer affects it.
  void complete() {
    completed_ = true;
    release_tensors();
  }
  void release_tensors() {
    std::vector<Tensor> released;
    const std::lock_guard lock(mutex_);
    released.swap(tensors_);
  }

 private:
  void throw_if_failed() const {
    if (const auto failure = failure_->get()) throw error_for(*failure, rank_, record_);
  }

  const CollectiveRecord record_;
  const int rank_;
  CudaDevice& device_;
  const bool host_waits_;
  const std::shared_ptr<const GroupFailure> failure_;
  const EventPtr begin_;
  const EventPtr end_;
  std::atomic<bool> completed_{false};
  std::mutex mutex_;
  std::vector<Tensor> tensors_;
};

}  // namespace gradsync
