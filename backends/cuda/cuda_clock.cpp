#include "gradsync/backends/cuda/cuda_clock.hpp"

#include <algorithm>
#include <cmath>

#include "gradsync/backends/cuda/cuda_kernels.hpp"

namespace gradsync {

CudaClock::CudaClock(CudaDevice& device, WallClock::TimePoint origin)
    : device_(device),
      wall_(origin),
      timeline_(device.api(), device.events(), device.compute_stream(), wall_),
      blocks_(std::max(1, device.api().device_info(device.ordinal()).multiprocessors)) {}

void CudaClock::advance(Seconds duration) {
  if (duration <= Seconds(0)) return;
  if (!rounds_per_second_) rounds_per_second_ = measure_rounds_per_second();
  const double rounds = duration.count() * *rounds_per_second_;
  cuda::spin(device_.compute_stream(), blocks_, std::llround(rounds));
}

double CudaClock::measure_rounds_per_second() {
  constexpr std::int64_t kWarmUp = 200'000;  // rounds that bring the GPU's clocks up
  constexpr std::int64_t kMeasured = 2'000'000;
  const CudaStream stream = device_.compute_stream();
  const EventPtr begin = take_event(device_.events());
  const EventPtr end = take_event(device_.events());
  cuda::spin(stream, blocks_, kWarmUp);
  device_.api().record(begin.get(), stream);
  cuda::spin(stream, blocks_, kMeasured);
  device_.api().record(end.get(), stream);
  device_.wait_on_host(end.get());
  const Seconds elapsed = device_.api().elapsed(begin.get(), end.get());
  return static_cast<double>(kMeasured) / std::max(elapsed.count(), 1e-9);
}

void CudaClock::stamp(Seconds& time) {
  stamps_.push_back({take_event(device_.events()), &time});
  device_.api().record(stamps_.back().event.get(), device_.compute_stream());
}

void CudaClock::settle_stamps() {
  if (stamps_.empty()) return;
  device_.wait_on_host(stamps_.back().event.get());  // earlier stamps complete before it
  for (const Stamp& stamp : stamps_) *stamp.time = timeline_.time_of(stamp.event);
  stamps_.clear();
}

}  // namespace gradsync
