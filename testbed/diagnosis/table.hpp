#pragma once

#include <vector>

#include "gradsync/testbed/diagnosis/diagnosis.hpp"
#include "gradsync/testbed/diagnosis/digest.hpp"
#include "gradsync/testbed/diagnosis/sequences.hpp"

namespace gradsync::diagnosis {

/// One row per group of ranks in the same state, by first rank.
std::vector<DiagnosisRow> make_table(const Digest& digest, const Sequences& sequences);

}  // namespace gradsync::diagnosis
