#include "gradsync/predict/sweep.hpp"

#include <set>

#include <fmt/format.h>
#include <xxhash.h>

#include "gradsync/core/error.hpp"

namespace gradsync {
namespace {

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw Error(
      ErrorCode::kUsage,
      fmt::format("--over takes PATH=VALUE,VALUE,... such as /ddp/bucket_cap_mb=1,5,25; \"{}\" {}",
                  text, why));
}

/// Converts a JSON pointer or a dotted path to a dotted path.
std::string dotted(const std::string& text, const std::string& path) {
  if (!path.starts_with("/")) return path;
  std::string result;
  for (std::size_t i = 1; i < path.size(); ++i) {
    if (path[i] == '/') {
      result += '.';
    } else if (path[i] == '.' || path[i] == '~') {
      refuse(text, "names a key that no scenario has");
    } else {
      result += path[i];
    }
  }
  return result;
}

std::vector<std::string> split_values(const std::string& text) {
  std::vector<std::string> values(1);
  int depth = 0;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (!quoted && (c == '[' || c == '{')) ++depth;
    if (!quoted && (c == ']' || c == '}')) --depth;
    if (c == ',' && depth == 0 && !quoted) {
      values.emplace_back();
    } else {
      values.back() += c;
    }
  }
  return values;
}

}  // namespace

SweepAxis parse_sweep_axis(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) refuse(text, "is not of that form");
  SweepAxis axis{dotted(text, text.substr(0, equals)), split_values(text.substr(equals + 1))};
  if (axis.path.empty()) refuse(text, "has no path");
  std::set<std::string> seen;
  for (const std::string& value : axis.values) {
    if (value.empty()) refuse(text, "has an empty value");
    if (!seen.insert(value).second) refuse(text, "has the value " + value + " twice");
  }
  return axis;
}

std::vector<SweepPoint> sweep_points(const std::vector<SweepAxis>& axes) {
  std::vector<SweepPoint> points(1);
  for (const SweepAxis& axis : axes) {
    std::vector<SweepPoint> longer;
    for (const SweepPoint& point : points) {
      for (const std::string& value : axis.values) {
        SweepPoint next = point;
        next.values.push_back(value);
        next.overrides.push_back({axis.path, value, fmt::format("--over {}={}", axis.path, value)});
        longer.push_back(std::move(next));
      }
    }
    points = std::move(longer);
  }
  return points;
}

std::string content_key(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += fmt::format("{}:", text.size()) + text;
  const XXH128_hash_t hash = XXH3_128bits(all.data(), all.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace gradsync
