#include "gradsync/simulator/kernel/packet_loss.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gradsync {

BytesPerSecond tcp_limit(double loss_probability, Seconds round_trip) {
  constexpr double kSegment = 1460;  // bytes: a 1500-byte frame minus IP and TCP headers
  if (loss_probability <= 0 || round_trip <= Seconds{0}) {
    return {std::numeric_limits<double>::infinity()};
  }
  return {kSegment / round_trip.count() * std::sqrt(1.5 / loss_probability)};
}

Seconds end_of_sending(const std::vector<LossPeriod>& losses, Seconds round_trip,
                       BytesPerSecond bandwidth, Seconds begin, double bytes) {
  Seconds now = begin;
  while (true) {
    double arrive = 1;  // fraction of packets that arrive
    Seconds change{std::numeric_limits<double>::infinity()};
    for (const LossPeriod& period : losses) {
      if (period.begin <= now && now < period.end) arrive *= 1 - period.probability;
      for (const Seconds date : {period.begin, period.end}) {
        if (date > now) change = std::min(change, date);
      }
    }
    const double rate = std::min(bandwidth.value, tcp_limit(1 - arrive, round_trip).value);
    const Seconds end = now + Seconds(bytes / rate);
    if (end <= change) return end;
    bytes -= rate * (change - now).count();
    now = change;
  }
}

}  // namespace gradsync
