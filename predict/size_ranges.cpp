#include "gradsync/predict/size_ranges.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace gradsync {
namespace {

constexpr Bytes kKiB = 1024, kMiB = 1024 * kKiB;

struct Range {
  const char* name;
  Bytes last;
};
constexpr std::array<Range, 4> kRanges{{{"up to 64 KiB", 64 * kKiB},
                                        {"64 KiB to 1 MiB", kMiB},
                                        {"1 to 64 MiB", 64 * kMiB},
                                        {"above 64 MiB", std::numeric_limits<Bytes>::max()}}};

}  // namespace

std::vector<RangeError> errors_by_size(const std::vector<AccuracyRow>& rows) {
  std::vector<RangeError> errors;
  Bytes first = 0;
  for (const Range& range : kRanges) {
    std::vector<AccuracyRow> inside;
    for (const AccuracyRow& row : rows) {
      if (row.bytes >= first && row.bytes <= range.last) inside.push_back(row);
    }
    if (!inside.empty()) {
      RangeError error{range.name, inside.size(), geometric_mean_error(inside), 0};
      for (const AccuracyRow& row : inside) {
        if (std::abs(row.error()) > std::abs(error.worst)) error.worst = row.error();
      }
      errors.push_back(std::move(error));
    }
    first = range.last + (range.last < std::numeric_limits<Bytes>::max() ? 1 : 0);
  }
  return errors;
}

std::string describe(const std::vector<RangeError>& errors) {
  std::string text;
  for (const RangeError& error : errors) {
    text += fmt::format("#   {:<16} {:>3} sizes, geometric mean error {:.1f}%, worst {:+.1f}%\n",
                        error.range, error.rows, error.geometric_mean * 100, error.worst * 100);
  }
  return text;
}

std::string size_text(Bytes bytes) {
  constexpr std::array<std::pair<Bytes, const char*>, 3> kUnits{
      {{1024 * kMiB, "GiB"}, {kMiB, "MiB"}, {kKiB, "KiB"}}};
  for (const auto& [unit, name] : kUnits) {
    if (bytes >= unit) {
      return fmt::format("{:.3g} {}", static_cast<double>(bytes) / static_cast<double>(unit), name);
    }
  }
  return fmt::format("{} B", bytes);
}

}  // namespace gradsync
