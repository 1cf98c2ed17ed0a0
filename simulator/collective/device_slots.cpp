#include "gradsync/simulator/collective/device_slots.hpp"

#include <algorithm>
#include <utility>

namespace gradsync {

bool DeviceSlots::take(const void* who, std::function<void()> retry) {
  if (free_ > 0) {
    --free_;
    return true;
  }
  if (std::ranges::find(waiting_, who, &Waiting::who) == waiting_.end()) {
    waiting_.push_back({who, std::move(retry)});
  }
  return false;
}

void DeviceSlots::release() {
  ++free_;
  while (free_ > 0 && !waiting_.empty()) {
    const Waiting next = std::move(newest_first_ ? waiting_.back() : waiting_.front());
    if (newest_first_) {
      waiting_.pop_back();
    } else {
      waiting_.pop_front();
    }
    next.retry();
  }
}

}  // namespace gradsync
