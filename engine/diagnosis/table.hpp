#pragma once

#include <vector>

#include "engine/diagnosis/diagnosis.hpp"
#include "engine/diagnosis/digest.hpp"
#include "engine/diagnosis/sequences.hpp"

namespace gradsync::diagnosis {

/// One row for each group of ranks that stand alike, by first rank.
std::vector<DiagnosisRow> make_table(const Digest& digest, const Sequences& sequences);

}  // namespace gradsync::diagnosis
