#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "gradsync/backends/cuda/cuda_api.hpp"
#include "gradsync/core/clock.hpp"

namespace gradsync {

/// Events for use again and again: making one costs more than recording it. Thread-safe.
class EventPool {
 public:
  explicit EventPool(CudaApi& api) : api_(&api) {}
  ~EventPool();
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  CudaEvent take();
  void give_back(CudaEvent event);

 private:
  CudaApi* api_;
  std::mutex mutex_;
  std::vector<CudaEvent> idle_;
};

/// An event of a pool, which goes back there when the last holder is gone.
using EventPtr = std::shared_ptr<CUevent_st>;
EventPtr take_event(const std::shared_ptr<EventPool>& pool);

/// The rank's clock, read off events: CUDA knows only the time between two of them, so this holds
/// one whose time is known. Times are exact to about a microsecond; they never lie in the future.
///
/// Used by one thread.
class EventTimeline {
 public:
  /// Takes its bearings with a host wait, here and nowhere else.
  EventTimeline(CudaApi& api, std::shared_ptr<EventPool> pool, CudaStream stream,
                const Clock& clock);

  /// Of an event of the same device that is done. It becomes the new reference when it is later
  /// than the last: CUDA gives differences as float milliseconds, which lose their precision with
  /// time.
  Seconds time_of(const EventPtr& event);

 private:
  CudaApi* api_;
  const Clock* clock_;
  EventPtr reference_;
  Seconds reference_time_{0};
};

}  // namespace gradsync
