#include "gradsync/predict/outliers.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace gradsync {
namespace {

constexpr double kFall = 0.8;
constexpr Bytes kLarge = Bytes{1} << 30;
constexpr double kLeastShare = 0.5;

double bus_bandwidth_of(const MeasuredTime& row) {
  return static_cast<double>(row.bytes) / row.time.count() * 2 * (row.ranks - 1) / row.ranks;
}

}  // namespace

std::vector<std::string> outlier_signs(const std::vector<MeasuredTime>& rows,
                                       BytesPerSecond bus_bandwidth) {
  std::map<int, std::vector<MeasuredTime>> by_ranks;
  for (const MeasuredTime& row : rows) by_ranks[row.ranks].push_back(row);
  std::vector<std::string> signs;
  for (auto& [ranks, same] : by_ranks) {
    std::sort(same.begin(), same.end(),
              [](const MeasuredTime& a, const MeasuredTime& b) { return a.bytes < b.bytes; });
    const MeasuredTime* slowest = &same.front();
    for (const MeasuredTime& row : same) {
      if (row.bytes > slowest->bytes && row.time < slowest->time * kFall) {
        signs.push_back(fmt::format(
            "{} bytes take {:.4g} us where {} take {:.4g} us: the time falls with the size",
            row.bytes, row.time.count() * 1e6, slowest->bytes, slowest->time.count() * 1e6));
        slowest = &row;
      }
      if (row.time >= slowest->time) slowest = &row;
    }
    for (const MeasuredTime& row : same) {
      const double measured = bus_bandwidth_of(row);
      if (row.bytes < kLarge || measured >= kLeastShare * bus_bandwidth.value) continue;
      signs.push_back(
          fmt::format("{} bytes move at {:.4g} GB/s (busbw), {:.0f}% of the data "
                      "sheet's {:.4g} GB/s",
                      row.bytes, measured / 1e9, measured / bus_bandwidth.value * 100,
                      bus_bandwidth.value / 1e9));
    }
  }
  return signs;
}

}  // namespace gradsync
