#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/testbed/diagnosis/digest.hpp"
#include "gradsync/testbed/diagnosis/kinds.hpp"

namespace gradsync::diagnosis {

/// A place at which some ranks' loops took another way than the others', by what the ranks wrote
/// down of themselves: their first step, their log, the reductions of their steps. What collectives
/// met or waited afterwards is a consequence.
struct Turn {
  DiagnosisKind kind = DiagnosisKind::kSkippedStep;
  std::vector<int> ranks;  ///< that took it, ascending; none where no majority says which side did
  std::int64_t step = 0;   ///< the first that is not the same on all ranks
  std::string because;
  std::string first_cause;
  bool tie = false;
};

/// The earliest turn, by step; nothing where the records show none.
std::optional<Turn> first_turn(const Digest& digest);

}  // namespace gradsync::diagnosis
