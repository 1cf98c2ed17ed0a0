#pragma once

#include <vector>

#include "gradsync/core/units.hpp"

namespace gradsync {

/// From when to when a link loses packets, each with `probability`.
struct LossPeriod {
  Seconds begin{0};
  Seconds end{0};
  double probability = 0;
};

/// What a TCP connection carries at most over a way that loses packets: MSS / RTT * C / sqrt(p),
/// with C = sqrt(3/2) for a receiver that acknowledges every segment (M. Mathis, J. Semke,
/// J. Mahdavi, T. Ott: The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm, ACM CCR
/// 27(3), 1997, equation 3 and table 1). The segment is Ethernet's: 1460 bytes. The model knows
/// fast retransmission and no retransmission timeouts: with more than a few percent of loss a real
/// connection is slower still. Without loss, or on a way without latency, there is no limit
/// (infinity).
BytesPerSecond tcp_limit(double loss_probability, Seconds round_trip);

/// When the last of `bytes` has left that a connection begins to send at `begin`, at
/// `tcp_limit` as long as periods of loss last, and else at `bandwidth`. Losses of several links at
/// one time are independent of each other.
Seconds end_of_sending(const std::vector<LossPeriod>& losses, Seconds round_trip,
                       BytesPerSecond bandwidth, Seconds begin, double bytes);

}  // namespace gradsync
