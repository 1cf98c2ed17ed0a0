#pragma once

#include <optional>
#include <vector>

#include "gradsync/backends/cuda/cuda_device.hpp"
#include "gradsync/core/wall_clock.hpp"

namespace gradsync {

/// The clock of a rank on a GPU. `now` is host time. Because the host runs ahead of the GPU, step
/// times come from stamps: events on the compute stream that are read when they are settled.
///
/// `advance` enqueues work of the requested duration on the compute stream and returns:
/// multiply-adds on as many blocks as the GPU has multiprocessors. The first call measures their
/// speed (two host waits); later calls do not wait.
class CudaClock final : public Clock {
 public:
  /// `device` must outlive the clock.
  CudaClock(CudaDevice& device, WallClock::TimePoint origin);

  Seconds now() const override { return wall_.now(); }
  void advance(Seconds duration) override;
  void sleep(Seconds duration) override { wall_.sleep(duration); }
  void charge_flops(double) override {}
  bool is_behind_host() const noexcept override { return true; }
  void stamp(Seconds& time) override;
  void settle_stamps() override;
  void forget_stamps() noexcept override { stamps_.clear(); }

 private:
  struct Stamp {
    EventPtr event;
    Seconds* time;
  };

  double measure_rounds_per_second();

  CudaDevice& device_;
  WallClock wall_;
  EventTimeline timeline_;
  int blocks_;
  std::optional<double> rounds_per_second_;
  std::vector<Stamp> stamps_;  // in stream order
};

}  // namespace gradsync
