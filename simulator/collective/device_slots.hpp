#pragma once

#include <deque>
#include <functional>

namespace gradsync {

/// Room on a rank's device for the kernels of collectives, over all process groups. A kernel holds
/// its slot from its start to the end of the collective, also while it waits for other ranks: so
/// devices that start the same collectives in another order can wait for each other for ever.
/// Kernel context only.
class DeviceSlots {
 public:
  /// `newest_first`: of those that wait the device starts the one that asked last, else the one
  /// that asked first.
  DeviceSlots(int slots, bool newest_first) : free_(slots), newest_first_(newest_first) {}

  /// Takes a slot and returns true, or notes that `who` waits: `retry` is called once, when it may
  /// ask again. One that waits already keeps its place.
  bool take(const void* who, std::function<void()> retry);
  /// A kernel has ended.
  void release();

 private:
  struct Waiting {
    const void* who;
    std::function<void()> retry;
  };
  int free_;
  bool newest_first_;
  std::deque<Waiting> waiting_;
};

}  // namespace gradsync
