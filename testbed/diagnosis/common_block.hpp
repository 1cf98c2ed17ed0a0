#pragma once

#include <string>
#include <vector>

#include "gradsync/testbed/diagnosis/diagnosis.hpp"
#include "gradsync/testbed/diagnosis/digest.hpp"

namespace gradsync::diagnosis {

/// The parts of a diagnosis that do not depend on the rule that found it.

/// Lowers `found.confidence` if the evidence has gaps: missing reports, or a cause inferred by
/// ruling out others.
void weigh(Diagnosis& found, const Digest& digest);

/// Causes that the records exclude, each with the evidence against it. Omits what the verdict is
/// about.
std::vector<std::string> ruled_out(const Diagnosis& found, const Digest& digest);

Reproduction reproduction(const Diagnosis& found, const Scenario& scenario);

}  // namespace gradsync::diagnosis
