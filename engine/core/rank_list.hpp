#pragma once

#include <span>
#include <string>

namespace gradsync {

/// "rank 3", "ranks 0-2, 5": how every message names ranks. `ranks` must be ascending.
std::string rank_list(std::span<const int> ranks);

/// The numbers alone: "3", "0-2, 5".
std::string rank_numbers(std::span<const int> ranks);

}  // namespace gradsync
