#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "gradsync/backends/cuda/cuda_api.hpp"
#include "gradsync/core/clock.hpp"

namespace gradsync {

/// A pool of events, because creating one costs more than recording it. Thread-safe.
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

/// An event that returns to its pool when the last holder is gone.
using EventPtr = std::shared_ptr<CUevent_st>;
EventPtr take_event(const std::shared_ptr<EventPool>& pool);

/// Converts events to times on the rank's clock. CUDA only gives the time between two events, so
/// this class keeps a reference event whose time is known. Times are accurate to about a
/// microsecond and never lie in the future.
///
/// Used by one thread.
class EventTimeline {
 public:
  /// Records the first reference, which takes the only host wait of this class.
  EventTimeline(CudaApi& api, std::shared_ptr<EventPool> pool, CudaStream stream,
                const Clock& clock);

  /// The time of a completed event of the same device. The event becomes the new reference if it is
  /// later than the current one, because CUDA returns differences as float milliseconds, which lose
  /// precision as they grow.
  Seconds time_of(const EventPtr& event);

 private:
  CudaApi* api_;
  const Clock* clock_;
  EventPtr reference_;
  Seconds reference_time_{0};
};

}  // namespace gradsync
