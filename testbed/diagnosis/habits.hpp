#pragma once

#include <vector>

#include "gradsync/testbed/diagnosis/digest.hpp"

namespace gradsync::diagnosis {

/// What the ranks' earlier steps say of a collective: a program does in each step what it did in
/// the steps before, unless something is wrong with one of them.
enum class Habit {
  kUsual,    ///< it follows what it followed in an earlier step
  kUnusual,  ///< in earlier steps something else followed
  kUnknown,  ///< there is no earlier step in which the same came before
};

/// The habit of `rank` with its own `record`, over all groups.
Habit habit_of(const Digest& digest, int rank, const CollectiveRecord& record);

/// Whether a collective of this place in the program was issued in an earlier step, by any rank.
bool was_issued_before(const Digest& digest, const CollectiveRecord& record);

}  // namespace gradsync::diagnosis
