#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace gradsync::test {

/// Cuts the text, changes bytes, or puts a piece of it somewhere else.
inline std::string damage(std::string text, std::mt19937_64& random) {
  const auto below = [&](std::size_t limit) { return limit == 0 ? 0 : random() % limit; };
  switch (below(4)) {
    case 0:
      text.resize(below(text.size()));
      break;
    case 1:
      for (std::size_t n = 1 + below(8); n > 0 && !text.empty(); --n) {
        text[below(text.size())] = static_cast<char>(below(256));
      }
      break;
    case 2: {
      const std::string piece = text.substr(below(text.size()), below(200));
      text.insert(below(text.size()), piece);
      break;
    }
    default:
      // A number for another one: the text keeps its form, and says something absurd.
      for (std::size_t n = 1 + below(6); n > 0; --n) {
        const std::size_t at = text.find_first_of("0123456789", below(text.size()));
        if (at != std::string::npos) text[at] = static_cast<char>('0' + below(10));
      }
      break;
  }
  return text;
}

}  // namespace gradsync::test
