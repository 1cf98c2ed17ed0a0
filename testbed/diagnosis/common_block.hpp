#pragma once

#include <string>
#include <vector>

#include "gradsync/testbed/diagnosis/diagnosis.hpp"
#include "gradsync/testbed/diagnosis/digest.hpp"

namespace gradsync::diagnosis {

/// What every diagnosis says beside its cause, whichever rule found that.

/// Lowers `found.confidence` where the evidence has gaps: reports that are missing, or a cause that
/// is what remained when others were ruled out.
void weigh(Diagnosis& found, const Digest& digest);

/// Causes that the records exclude, each with what excludes it. Nothing that the verdict is about.
std::vector<std::string> ruled_out(const Diagnosis& found, const Digest& digest);

Reproduction reproduction(const Diagnosis& found, const Scenario& scenario);

}  // namespace gradsync::diagnosis
