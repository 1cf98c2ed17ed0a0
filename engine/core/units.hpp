#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace gradsync {

/// A duration, in seconds. Wall time on a real backend, simulated time in the simulator.
using Seconds = std::chrono::duration<double>;

/// An amount of memory or traffic, in bytes.
using Bytes = std::int64_t;

/// A transfer rate, in bytes per second.
struct BytesPerSecond {
  double value = 0;
  bool operator==(const BytesPerSecond&) const = default;
};

/// A compute rate, in floating-point operations per second.
struct FlopsPerSecond {
  double value = 0;
  bool operator==(const FlopsPerSecond&) const = default;
};

/// A text that is not a valid quantity. `what()` says what was expected, what was found and why it
/// was rejected; `reason()` is the last part alone: "the unit is missing (s, ms, ...)".
class QuantityError : public std::invalid_argument {
 public:
  QuantityError(const std::string& message, std::string reason)
      : std::invalid_argument(message), reason_(std::move(reason)) {}
  const std::string& reason() const noexcept { return reason_; }

 private:
  std::string reason_;
};

// Parsers of quantities with a unit, in SimGrid's spelling. No other code parses units. k, M, G, T
// are powers of 1000; Ki, Mi, Gi, Ti powers of 1024; "B" is bytes, "b" bits. There is no space
// between the number and its unit. A missing or unknown unit, a negative or non-finite number, and
// trailing text throw QuantityError.

/// "5us", "10ms", "1.5s", "2min", "1h" (ns, us, ms, s, min, h).
Seconds parse_duration(std::string_view text);
/// "25MiB", "1048576B", "10MB".
Bytes parse_bytes(std::string_view text);
/// "25GBps", "200Gbps", "12.5MBps".
BytesPerSecond parse_bandwidth(std::string_view text);
/// "50Gf", "1.5Tf" (floating-point operations per second).
FlopsPerSecond parse_compute_rate(std::string_view text);

/// The shortest text that the matching parser reads back to the same value.
std::string format_duration(Seconds value);
std::string format_bandwidth(BytesPerSecond value);
std::string format_compute_rate(FlopsPerSecond value);
/// Human-readable: "6.0 MB", "1.3 GB", "340 MB" (powers of 1000, at least two significant digits).
std::string format_bytes_human(Bytes value);

/// The kind of quantity a text holds.
enum class Quantity { kDuration, kBytes, kBandwidth, kComputeRate };

/// The expectation named in error messages, e.g. "a bandwidth such as \"25GBps\"".
std::string describe_quantity(Quantity quantity);
/// A regular expression (ECMA 262, anchored) for the texts that the parser accepts; used in
/// schemas.
std::string quantity_pattern(Quantity quantity);

}  // namespace gradsync
