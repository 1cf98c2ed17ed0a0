#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "gradsync/comm/flight_recorder.hpp"

namespace gradsync {

/// Keeps every collective that a flight recorder sees end, beyond what its ring holds.
///
/// Records arrive on whichever thread ends a collective, perhaps after the rank that asked for them
/// is gone (a group that is torn down): they live in an object that the recorder's observer shares.
class CollectiveCollector {
 public:
  explicit CollectiveCollector(FlightRecorder& recorder) : store_(std::make_shared<Store>()) {
    recorder.set_completion_observer([store = store_](const CollectiveRecord& record) {
      const std::lock_guard lock(store->mutex);
      store->records.push_back(record);
    });
  }

  /// In the order of completion.
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
