#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/testbed/diagnosis/digest.hpp"
#include "gradsync/testbed/diagnosis/kinds.hpp"

namespace gradsync::diagnosis {

/// A point at which some ranks' loops took a different turn, according to the ranks' own records:
/// their first step, their log, the reductions of their steps. Any later mismatch or wait of
/// collectives is a consequence.
struct Turn {
  DiagnosisKind kind = DiagnosisKind::kSkippedStep;
  std::vector<int> ranks;  ///< that took it, ascending; empty if there is no majority
  std::int64_t step = 0;   ///< the first step that differs between ranks
  std::string because;
  std::string first_cause;
  bool tie = false;
};

/// The earliest turn, by step; nullopt if the records show none.
std::optional<Turn> first_turn(const Digest& digest);

}  // namespace gradsync::diagnosis
