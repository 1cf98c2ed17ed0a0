#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace gradsync::diagnosis {

/// The well-known wording of DDP's errors (kept by engine/ddp/reducer_errors.hpp), and what it
/// means.
enum class Misuse { kUnfinished, kReadyTwice, kGraphChanged, kNotAttached };

inline std::optional<Misuse> find_misuse_words(std::string_view error) {
  constexpr std::array<std::pair<std::string_view, Misuse>, 4> kWords{
      {{"expected to have finished reduction", Misuse::kUnfinished},
       {"expected to mark a variable ready only once", Misuse::kReadyTwice},
       {"your training graph has changed", Misuse::kGraphChanged},
       {"an output that depends on no parameter", Misuse::kNotAttached}}};
  for (const auto& [words, misuse] : kWords) {
    if (error.find(words) != std::string_view::npos) return misuse;
  }
  return std::nullopt;
}

}  // namespace gradsync::diagnosis
