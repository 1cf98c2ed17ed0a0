#include "gradsync/core/units.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace gradsync {
namespace {

/// One spelling of a unit. A value in base units is number * times / divided_by. Both factors are
/// powers of ten or two that a double holds exactly, so "35us" parses to the double nearest to
/// 35e-6; 35 * 1e-6 would be off by one rounding.
struct Unit {
  const char* suffix;
  double times;
  double divided_by;

  double to_base(double number) const { return number * times / divided_by; }
  double from_base(double value) const { return value * divided_by / times; }
};

constexpr double kBitsPerByte = 8;
constexpr double kKi = 1024.0;
constexpr double kMi = kKi * 1024.0;
constexpr double kGi = kMi * 1024.0;
constexpr double kTi = kGi * 1024.0;

// In order of preference for output: of two texts of equal length, the first wins.
constexpr std::array kDurations{Unit{"s", 1, 1},    Unit{"ms", 1, 1e3}, Unit{"us", 1, 1e6},
                                Unit{"ns", 1, 1e9}, Unit{"min", 60, 1}, Unit{"h", 3600, 1}};
constexpr std::array kBytes{Unit{"TB", 1e12, 1},
                            Unit{"GB", 1e9, 1},
                            Unit{"MB", 1e6, 1},
                            Unit{"kB", 1e3, 1},
                            Unit{"B", 1, 1},
                            Unit{"TiB", kTi, 1},
                            Unit{"GiB", kGi, 1},
                            Unit{"MiB", kMi, 1},
                            Unit{"KiB", kKi, 1},
                            Unit{"Tb", 1e12, kBitsPerByte},
                            Unit{"Gb", 1e9, kBitsPerByte},
                            Unit{"Mb", 1e6, kBitsPerByte},
                            Unit{"kb", 1e3, kBitsPerByte},
                            Unit{"b", 1, kBitsPerByte},
                            Unit{"Tib", kTi, kBitsPerByte},
                            Unit{"Gib", kGi, kBitsPerByte},
                            Unit{"Mib", kMi, kBitsPerByte},
                            Unit{"Kib", kKi, kBitsPerByte}};
constexpr std::array kBandwidths{Unit{"TBps", 1e12, 1},
                                 Unit{"GBps", 1e9, 1},
                                 Unit{"MBps", 1e6, 1},
                                 Unit{"kBps", 1e3, 1},
                                 Unit{"Bps", 1, 1},
                                 Unit{"TiBps", kTi, 1},
                                 Unit{"GiBps", kGi, 1},
                                 Unit{"MiBps", kMi, 1},
                                 Unit{"KiBps", kKi, 1},
                                 Unit{"Tbps", 1e12, kBitsPerByte},
                                 Unit{"Gbps", 1e9, kBitsPerByte},
                                 Unit{"Mbps", 1e6, kBitsPerByte},
                                 Unit{"kbps", 1e3, kBitsPerByte},
                                 Unit{"bps", 1, kBitsPerByte},
                                 Unit{"Tibps", kTi, kBitsPerByte},
                                 Unit{"Gibps", kGi, kBitsPerByte},
                                 Unit{"Mibps", kMi, kBitsPerByte},
                                 Unit{"Kibps", kKi, kBitsPerByte}};
constexpr std::array kComputeRates{Unit{"Tf", 1e12, 1}, Unit{"Gf", 1e9, 1},  Unit{"Mf", 1e6, 1},
                                   Unit{"kf", 1e3, 1},  Unit{"f", 1, 1},     Unit{"Tif", kTi, 1},
                                   Unit{"Gif", kGi, 1}, Unit{"Mif", kMi, 1}, Unit{"Kif", kKi, 1}};

struct QuantityTraits {
  const char* noun;
  const char* example;
  std::span<const Unit> units;
};

QuantityTraits traits(Quantity quantity) {
  switch (quantity) {
    case Quantity::kDuration:
      return {"a duration", "5ms", kDurations};
    case Quantity::kBytes:
      return {"an amount of memory", "25MiB", kBytes};
    case Quantity::kBandwidth:
      return {"a bandwidth", "25GBps", kBandwidths};
    case Quantity::kComputeRate:
      return {"a compute rate", "50Gf", kComputeRates};
  }
  throw std::invalid_argument("unknown quantity");
}

[[noreturn]] void refuse(Quantity quantity, std::string_view text, const std::string& why) {
  throw QuantityError(
      fmt::format("expected {}, found \"{}\": {}", describe_quantity(quantity), text, why), why);
}

double parse(Quantity quantity, std::string_view text) {
  // from_chars would also accept "-1", "inf", "nan" and ".5".
  if (text.empty() || text.front() < '0' || text.front() > '9') {
    refuse(quantity, text, "it has to start with a number that is not negative");
  }
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{}) refuse(quantity, text, "the number is out of range");

  const std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
  std::string known;
  for (const Unit& unit : traits(quantity).units) {
    if (suffix == unit.suffix) {
      const double value = unit.to_base(number);
      if (!std::isfinite(value)) refuse(quantity, text, "the number is out of range");
      return value;
    }
    known += (known.empty() ? "" : ", ") + std::string(unit.suffix);
  }
  refuse(quantity, text,
         suffix.empty() ? "the unit is missing (" + known + ")"
                        : fmt::format("unknown unit \"{}\" (known: {})", suffix, known));
}

/// Bits are parsed but never printed: bandwidths are easier to compare if all are in bytes.
std::string format(Quantity quantity, double value) {
  std::string best;
  for (const Unit& unit : traits(quantity).units) {
    if (unit.divided_by == kBitsPerByte) continue;
    const double scaled = unit.from_base(value);
    if (!std::isfinite(scaled)) continue;
    std::array<char, 64> digits{};
    const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), scaled);
    std::string text = std::string(digits.data(), result.ptr) + unit.suffix;
    if (!best.empty() && text.size() >= best.size()) continue;
    // Scaling may round, so only a text that reads back to the same bits qualifies. The base unit
    // always does.
    double number = 0;
    std::from_chars(digits.data(), result.ptr, number);
    if (unit.to_base(number) == value) best = std::move(text);
  }
  return best;
}

}  // namespace

Seconds parse_duration(std::string_view text) {
  return Seconds{parse(Quantity::kDuration, text)};
}

Bytes parse_bytes(std::string_view text) {
  constexpr double kLargestExact = 9007199254740992.0;  // 2^53: smaller integers are exact
  const double value = parse(Quantity::kBytes, text);
  if (value > kLargestExact) refuse(Quantity::kBytes, text, "more than 8192TiB");
  if (value != std::floor(value)) refuse(Quantity::kBytes, text, "not a whole number of bytes");
  return static_cast<Bytes>(value);
}

BytesPerSecond parse_bandwidth(std::string_view text) {
  return {parse(Quantity::kBandwidth, text)};
}

FlopsPerSecond parse_compute_rate(std::string_view text) {
  return {parse(Quantity::kComputeRate, text)};
}

std::string format_duration(Seconds value) {
  return format(Quantity::kDuration, value.count());
}
std::string format_bandwidth(BytesPerSecond value) {
  return format(Quantity::kBandwidth, value.value);
}
std::string format_compute_rate(FlopsPerSecond value) {
  return format(Quantity::kComputeRate, value.value);
}

std::string format_bytes_human(Bytes value) {
  if (value < 1000) return fmt::format("{} B", value);
  constexpr std::array kSuffixes{"kB", "MB", "GB", "TB", "PB", "EB"};
  double scaled = static_cast<double>(value) / 1000.0;
  std::size_t i = 0;
  // 999.5 would print as 1000, so it moves to the next unit.
  for (; scaled >= 999.5 && i + 1 < kSuffixes.size(); ++i) scaled /= 1000.0;
  return fmt::format("{:.{}f} {}", scaled, scaled < 9.95 ? 1 : 0, kSuffixes[i]);
}

std::string describe_quantity(Quantity quantity) {
  const QuantityTraits t = traits(quantity);
  return fmt::format("{} such as \"{}\"", t.noun, t.example);
}

std::string quantity_pattern(Quantity quantity) {
  std::string suffixes;
  for (const Unit& unit : traits(quantity).units) {
    suffixes += (suffixes.empty() ? "" : "|") + std::string(unit.suffix);
  }
  return "^[0-9]+(\\.[0-9]*)?([eE][+-]?[0-9]+)?(" + suffixes + ")$";
}

}  // namespace gradsync
