#pragma once

#include <vector>

#include "gradsync/testbed/diagnosis/digest.hpp"

namespace gradsync::diagnosis {

/// How a collective compares with the ranks' earlier steps: a program does the same in every step,
/// unless something is wrong with one of them.
enum class Habit {
  kUsual,    ///< the same collective preceded it in an earlier step
  kUnusual,  ///< in earlier steps another one followed here
  kUnknown,  ///< no earlier step has the same predecessor
};

/// Compares `record`, which `rank` issued, with the rank's earlier steps, over all groups.
Habit habit_of(const Digest& digest, int rank, const CollectiveRecord& record);

/// Whether any rank issued a collective at this place of the program in an earlier step.
bool was_issued_before(const Digest& digest, const CollectiveRecord& record);

}  // namespace gradsync::diagnosis
