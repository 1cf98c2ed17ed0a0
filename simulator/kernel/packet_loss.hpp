#pragma once

#include <vector>

#include "gradsync/core/units.hpp"

namespace gradsync {

/// A period in which a link loses each packet with `probability`.
struct LossPeriod {
  Seconds begin{0};
  Seconds end{0};
  double probability = 0;
};

/// The maximum rate of a TCP connection over a route that loses packets: MSS / RTT * C / sqrt(p),
/// with C = sqrt(3/2) for a receiver that acknowledges every segment (M. Mathis, J. Semke, J.
/// Mahdavi, T. Ott: The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm, ACM CCR
/// 27(3), 1997, equation 3 and table 1). The segment is Ethernet's: 1460 bytes. The model includes
/// fast retransmission but no retransmission timeouts: with more than a few percent of loss a real
/// connection is slower still. Without loss, or on a route without latency, there is no limit
/// (infinity).
BytesPerSecond tcp_limit(double loss_probability, Seconds round_trip);

/// The time at which the last of `bytes` has left on a connection that starts sending at `begin`,
/// at `tcp_limit` during periods of loss and otherwise at `bandwidth`. Simultaneous losses of
/// several links are independent.
Seconds end_of_sending(const std::vector<LossPeriod>& losses, Seconds round_trip,
                       BytesPerSecond bandwidth, Seconds begin, double bytes);

}  // namespace gradsync
