#include "gradsync/testbed/scenario/scenario_hints.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/json_text.hpp"

namespace gradsync::scenario_table {
namespace {

std::string normalized(const std::string& word) {
  std::string text;
  for (const char c : word) {
    if (c == '_' || c == '-' || c == ' ') continue;
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

/// Edit distance with swaps of adjacent characters (optimal string alignment).
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before_last, last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last = last;
    last = row;
  }
  return last[b.size()];
}

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string wanted = normalized(word);
  std::string best;
  std::size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    const std::string other = normalized(candidate);
    const std::size_t edits = distance(wanted, other);
    if (edits > std::max<std::size_t>(1, std::max(wanted.size(), other.size()) / 3)) continue;
    if (edits >= std::max(wanted.size(), other.size())) continue;  // nothing in common
    if (best.empty() || edits < best_distance) {
      best = candidate;
      best_distance = edits;
    }
  }
  return best;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string candidate = nearest(word, candidates);
  return candidate.empty() ? "" : fmt::format("did you mean \"{}\"?", candidate);
}

std::string shortened(const nlohmann::ordered_json& value) {
  constexpr std::size_t kLongest = 60;
  std::string text = dump_json(value);
  if (text.size() <= kLongest) return text;
  std::size_t end = kLongest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) --end;
  return text.substr(0, end) + "...";
}

std::string enumerate(const std::vector<std::string>& words, const std::string& last_separator) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " " + last_separator + " " : ", ";
    text += words[i];
  }
  return text;
}

}  // namespace gradsync::scenario_table
