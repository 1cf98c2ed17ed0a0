#include "gradsync/backends/cuda/cuda_events.hpp"

#include <algorithm>
#include <thread>

#include "gradsync/core/error.hpp"

namespace gradsync {

EventPool::~EventPool() {
  for (const CudaEvent event : idle_) api_->destroy_event(event);
}

CudaEvent EventPool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      const CudaEvent event = idle_.back();
      idle_.pop_back();
      return event;
    }
  }
  return api_->create_event();
}

void EventPool::give_back(CudaEvent event) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(event);
}

EventPtr take_event(const std::shared_ptr<EventPool>& pool) {
  return EventPtr(pool->take(), [pool](CudaEvent event) { pool->give_back(event); });
}

EventTimeline::EventTimeline(CudaApi& api, std::shared_ptr<EventPool> pool, CudaStream stream,
                             const Clock& clock)
    : api_(&api), clock_(&clock), reference_(take_event(pool)) {
  constexpr Seconds kPatience{60};
  api_->record(reference_.get(), stream);
  const Seconds begin = clock.now();
  while (!api_->is_done(reference_.get())) {
    if (clock.now() - begin > kPatience) {
      throw Error(ErrorCode::kTimeout,
                  "the GPU did not get to an event in a minute: is another process using it up?");
    }
    std::this_thread::yield();
  }
  reference_time_ = clock.now();
}

Seconds EventTimeline::time_of(const EventPtr& event) {
  const Seconds since = api_->elapsed(reference_.get(), event.get());
  const Seconds time = std::min(reference_time_ + since, clock_->now());
  if (since > Seconds(0)) {
    reference_ = event;
    reference_time_ = time;
  }
  return time;
}

}  // namespace gradsync
