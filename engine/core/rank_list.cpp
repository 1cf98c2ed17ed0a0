#include "gradsync/core/rank_list.hpp"

#include <fmt/format.h>

namespace gradsync {

std::string rank_numbers(std::span<const int> ranks) {
  std::string text;
  for (std::size_t begin = 0; begin < ranks.size();) {
    std::size_t end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (!text.empty()) text += ", ";
    text += end - begin == 1 ? fmt::format("{}", ranks[begin])
                             : fmt::format("{}-{}", ranks[begin], ranks[end - 1]);
    begin = end;
  }
  return text;
}

std::string rank_list(std::span<const int> ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + rank_numbers(ranks);
}

}  // namespace gradsync
