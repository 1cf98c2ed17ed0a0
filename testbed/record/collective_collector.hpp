#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "gradsync/comm/flight_recorder.hpp"

namespace gradsync {

/// Collects every completed collective of a flight recorder, beyond the capacity of its ring.
///
/// Records arrive on the thread that completes a collective, possibly after the rank is gone (while
/// a group is torn down), so they live in an object shared with the recorder's observer.
class CollectiveCollector {
 public:
  explicit CollectiveCollector(FlightRecorder& recorder) : store_(std::make_shared<Store>()) {
    recorder.set_completion_observer([store = store_](const CollectiveRecord& record) {
      const std::lock_guard lock(store->mutex);
      store->records.push_back(record);
    });
  }

  /// In completion order.
  std::vector<CollectiveRecord> records() const {
    const std::lock_guard lock(store_->mutex);
    return store_->records;
  }

 private:
  struct Store {
    std::mutex mutex;
    std::vector<CollectiveRecord> records;
  };
  std::shared_ptr<Store> store_;
};

}  // namespace gradsync
