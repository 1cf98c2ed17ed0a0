#pragma once

#include <deque>
#include <functional>

namespace gradsync {

/// The slots of a rank's device for collective kernels, shared by all process groups. A kernel
/// holds its slot from its start to the end of the collective, even while it waits for other ranks.
/// Devices that start the same collectives in different orders can therefore deadlock. Kernel
/// context only.
class DeviceSlots {
 public:
  /// `newest_first`: whether a free slot goes to the newest waiter instead of the oldest.
  DeviceSlots(int slots, bool newest_first) : free_(slots), newest_first_(newest_first) {}

  /// Takes a slot and returns true, or registers `who` as a waiter: `retry` is called once, when it
  /// may try again. A waiter that is already registered keeps its place.
  bool take(const void* who, std::function<void()> retry);
  /// Frees the slot of a kernel that has ended.
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
